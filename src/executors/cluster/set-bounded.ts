/** Entries of one cache; the oldest above it are forgotten. */
const maxCachedEntries = 10_000;

/** Sets an entry and deletes the oldest one above the limit. */
export function setBounded<T>(entries: Map<string, T>, key: string, value: T): void {
  entries.delete(key);
  entries.set(key, value);
  const [oldest] = entries.keys();
  if (entries.size > maxCachedEntries && oldest !== undefined) entries.delete(oldest);
}
