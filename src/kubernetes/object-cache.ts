import type { KubernetesObject, Stored } from "./resources.ts";

/** Gives the values under which an object is found. */
export type Indexer<T extends KubernetesObject> = (object: Stored<T>) => readonly string[];

/** Objects of one namespace by name, and by the values that indexers give them. */
export class ObjectCache<T extends KubernetesObject> {
  readonly #objects = new Map<string, Stored<T>>();
  readonly #indexes: ReadonlyMap<string, { readonly valuesOf: Indexer<T>; readonly names: Map<string, Set<string>> }>;

  constructor(indexers: Readonly<Record<string, Indexer<T>>>) {
    const entries = Object.entries(indexers);
    this.#indexes = new Map(entries.map(([index, valuesOf]) => [index, { valuesOf, names: new Map() }]));
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
    const found = this.#indexes.get(index);
    if (found === undefined) throw new RangeError(`There is no index "${index}"`);
    return [...(found.names.get(value) ?? [])].flatMap((name) => this.#objects.get(name) ?? []);
  }

  put(object: Stored<T>): void {
    const { name } = object.metadata;
    this.delete(name);
    this.#objects.set(name, object);
    for (const { valuesOf, names } of this.#indexes.values()) {
      for (const value of valuesOf(object)) {
        const sharing = names.get(value);
        if (sharing === undefined) names.set(value, new Set([name]));
        else sharing.add(name);
      }
    }
  }

  delete(name: string): void {
    const object = this.#objects.get(name);
    if (object === undefined) return;
    this.#objects.delete(name);
    for (const { valuesOf, names } of this.#indexes.values()) {
      for (const value of valuesOf(object)) {
        const sharing = names.get(value);
        sharing?.delete(name);
        if (sharing?.size === 0) names.delete(value);
      }
    }
  }
}
