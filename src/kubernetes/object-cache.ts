import type { KubernetesObject, Stored } from "./resources.ts";

/** Gives the values under which an object is found, each once. */
export type Indexer<T extends KubernetesObject> = (object: Stored<T>) => readonly string[];

/** Objects of one namespace by name, and by the values that indexers give them. */
export class ObjectCache<T extends KubernetesObject> {
  readonly #objects = new Map<string, Stored<T>>();
  readonly indexer: ReadonlyMap<
    string,
    { readonly indexer: Indexer<T>; readonly names: NamesByValue }
  >;

  constructor(indexers: Readonly<Record<string, Indexer<T>>>) {
    const entries = Object.entries(indexers);
    this.indexer = new Map(
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
    const found = this.indexer.get(index);
    if (found === undefined) throw new RangeError(`There is no index "${index}"`);
    const objects: Stored<T>[] = [];
    for (const name of found.names.get(value) ?? []) {
      const object = this.#objects.get(name);
      if (object !== undefined) objects.push(object);
    }
    return objects;
  }

  put(object: Stored<T>): void {
    const { name } = object.metadata;
    const before = this.#objects.get(name);
    this.#objects.set(name, object);
    this.#index(name, before, object);
  }

  delete(name: string): void {
    const before = this.#objects.get(name);
    this.#objects.delete(name);
    this.#index(name, before, undefined);
  }

  #index(name: string, before: Stored<T> | undefined, after: Stored<T> | undefined): void {
    for (const { indexer, names } of this.indexer.values()) {
      const removedValues = before === undefined ? [] : indexer(before);
      const addedValues = after === undefined ? [] : indexer(after);
      for (const value of removedValues)
        if (!addedValues.includes(value)) removeFromIndex(names, value, name);
      for (const value of addedValues)
        if (!removedValues.includes(value)) addToIndex(names, value, name);
    }
  }
}

/** Few objects share a value, most often one has it alone: a list takes a quarter of a set's memory. */
type NamesByValue = Map<string, string[]>;

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
