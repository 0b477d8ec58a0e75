/** Sets an entry of a map; above `maxEntries` the one that was set least recently is deleted. */
export function setBounded<T>(
  entries: Map<string, T>,
  key: string,
  value: T,
  maxEntries: number,
): void {
  entries.delete(key);
  entries.set(key, value);
  const [oldest] = entries.keys();
  if (entries.size > maxEntries && oldest !== undefined) entries.delete(oldest);
}
