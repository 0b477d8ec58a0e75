import { parseResponseJson } from "./cluster-client.ts";
import { objectKey } from "./object-key.ts";
import type { KubernetesObject, Stored } from "./resources.ts";

/** Returns the distinct values under which an object is indexed. */
export type Indexer<T extends KubernetesObject> = (object: Stored<T>) => readonly string[];

/** Most values belong to one object, whose key takes less memory than a list of it. */
type KeysByValue = Map<string, string | string[]>;

interface Index<T extends KubernetesObject> {
  readonly indexer: Indexer<T>;
  readonly keys: KeysByValue;
}

/**
 * Objects by `objectKey` and by the values of indexers. They are kept as packed JSON, which takes a
 * sixth of the memory of objects, and most are read seldom: each read parses one again.
 */
export class ObjectCache<T extends KubernetesObject> {
  readonly #texts = new Map<string, string>();
  readonly #templates = new TextTemplates();
  readonly #indexes: ReadonlyMap<string, Index<T>>;

  constructor(indexers: Readonly<Record<string, Indexer<T>>>) {
    const entries = Object.entries(indexers);
    this.#indexes = new Map(
      entries.map(([index, indexer]) => [index, { indexer, keys: new Map() }]),
    );
  }

  get size(): number {
    return this.#texts.size;
  }

  get(key: string): Stored<T> | undefined {
    const text = this.#texts.get(key);
    return text === undefined ? undefined : this.#parse(text);
  }

  keys(): Iterable<string> {
    return this.#texts.keys();
  }

  *values(): Iterable<Stored<T>> {
    for (const text of this.#texts.values()) yield this.#parse(text);
  }

  byIndex(index: string, value: string): Stored<T>[] {
    const { keys: keysByValue } = this.#getIndex(index);
    const objects: Stored<T>[] = [];
    for (const key of listKeys(keysByValue, value)) {
      const object = this.get(key);
      if (object !== undefined) objects.push(object);
    }
    return objects;
  }

  /** Replaces `before`, the cached object of that key. */
  put(object: Stored<T>, before: Stored<T> | undefined): void {
    const key = objectKey(object.metadata);
    this.#texts.set(key, this.#templates.pack(JSON.stringify(object)));
    this.#updateIndexes(key, before, object);
  }

  /** Returns the object that was cached. */
  delete(key: string): Stored<T> | undefined {
    const before = this.get(key);
    this.#texts.delete(key);
    this.#updateIndexes(key, before, undefined);
    return before;
  }

  #parse(text: string): Stored<T> {
    return parseResponseJson(this.#templates.unpack(text));
  }

  #getIndex(name: string): Index<T> {
    const index = this.#indexes.get(name);
    if (index === undefined) throw new RangeError(`There is no index "${name}"`);
    return index;
  }

  #updateIndexes(key: string, before: Stored<T> | undefined, after: Stored<T> | undefined): void {
    for (const { indexer, keys } of this.#indexes.values()) {
      const removedValues = before === undefined ? [] : indexer(before);
      const addedValues = after === undefined ? [] : indexer(after);
      for (const value of removedValues)
        if (!addedValues.includes(value)) removeFromIndex(keys, value, key);
      for (const value of addedValues)
        if (!removedValues.includes(value)) addToIndex(keys, value, key);
    }
  }
}

function listKeys(keys: KeysByValue, value: string): readonly string[] {
  const found = keys.get(value) ?? [];
  return typeof found === "string" ? [found] : found;
}

function addToIndex(keys: KeysByValue, value: string, key: string): void {
  const others = keys.get(value);
  if (typeof others === "object") others.push(key);
  else keys.set(value, others === undefined ? key : [others, key]);
}

function removeFromIndex(keys: KeysByValue, value: string, key: string): void {
  const others = listKeys(keys, value).filter((each) => each !== key);
  const [only] = others;
  if (only === undefined) keys.delete(value);
  else keys.set(value, others.length === 1 ? only : others);
}

/** Of texts with other counts of parts, whole texts are kept. */
const maxTemplates = 64;
const separator = '"';

/**
 * JSON texts of one resource are mostly alike: of each, only what differs from the first one with
 * as many quotation marks is kept, a third of it.
 */
export class TextTemplates {
  /** Parts of the first text, by their count. */
  readonly #templates = new Map<number, readonly string[]>();

  /** What `unpack` makes the text of, for as long as this object lives. */
  pack(json: string): string {
    const parts = json.split(separator);
    const template = this.#templates.get(parts.length) ?? this.#addTemplate(parts);
    if (template === undefined) return json;
    const packed: (string | number)[] = [parts.length];
    parts.forEach((part, index) => {
      if (part !== template[index]) packed.push(index, part);
    });
    return packed.join(separator);
  }

  unpack(packed: string): string {
    if (packed.startsWith("{")) return packed;
    const [count, ...differences] = packed.split(separator);
    const parts = [...(this.#templates.get(Number(count)) ?? [])];
    for (let at = 0; at < differences.length; at += 2)
      parts[Number(differences[at])] = differences[at + 1] ?? "";
    return parts.join(separator);
  }

  #addTemplate(parts: readonly string[]): readonly string[] | undefined {
    if (this.#templates.size === maxTemplates) return undefined;
    this.#templates.set(parts.length, parts);
    return parts;
  }
}
