import type { KubernetesObject, Stored } from "./resources.ts";

/** Returns the distinct values under which an object is indexed. */
export type Indexer<T extends KubernetesObject> = (object: Stored<T>) => readonly string[];

/** Most values belong to one object: an array takes a quarter of the memory of a set. */
type NamesByValue = Map<string, string[]>;

interface Index<T extends KubernetesObject> {
  readonly indexer: Indexer<T>;
  readonly names: NamesByValue;
}

/** Objects of one namespace by name and by the values of indexers. */
export class ObjectCache<T extends KubernetesObject> {
  readonly #objects = new Map<string, Stored<T>>();
  readonly #indexes: ReadonlyMap<string, Index<T>>;

  constructor(indexers: Readonly<Record<string, Indexer<T>>>) {
    const entries = Object.entries(indexers);
    this.#indexes = new Map(
      entries.map(([index, indexer]) => [index, { indexer, names: new Map() }]),
    );
  }

  get size(): number {
    return this.#objects.size;
  }

  get(name: string): Stored<T> | undefined {
    return this.#objects.get(name);
  }

  values(): Iterable<Stored<T>> {
    return this.#objects.values();
  }

  byIndex(index: string, value: string): Stored<T>[] {
    const { names: namesByValue } = this.#getIndex(index);
    const objects: Stored<T>[] = [];
    for (const name of namesByValue.get(value) ?? []) {
      const object = this.#objects.get(name);
      if (object !== undefined) objects.push(object);
    }
    return objects;
  }

  put(object: Stored<T>): void {
    const { name } = object.metadata;
    const before = this.#objects.get(name);
    this.#objects.set(name, object);
    this.#updateIndexes(name, before, object);
  }

  delete(name: string): void {
    const before = this.#objects.get(name);
    this.#objects.delete(name);
    this.#updateIndexes(name, before, undefined);
  }

  #getIndex(name: string): Index<T> {
    const index = this.#indexes.get(name);
    if (index === undefined) throw new RangeError(`There is no index "${name}"`);
    return index;
  }

  #updateIndexes(name: string, before: Stored<T> | undefined, after: Stored<T> | undefined): void {
    for (const { indexer, names } of this.#indexes.values()) {
      const removedValues = before === undefined ? [] : indexer(before);
      const addedValues = after === undefined ? [] : indexer(after);
      for (const value of removedValues)
        if (!addedValues.includes(value)) removeFromIndex(names, value, name);
      for (const value of addedValues)
        if (!removedValues.includes(value)) addToIndex(names, value, name);
    }
  }
}

function addToIndex(names: NamesByValue, value: string, name: string): void {
  const sharing = names.get(value);
  if (sharing === undefined) names.set(value, [name]);
  else sharing.push(name);
}

function removeFromIndex(names: NamesByValue, value: string, name: string): void {
  const others = names.get(value)?.filter((each) => each !== name) ?? [];
  if (others.length === 0) names.delete(value);
  else names.set(value, others);
}
