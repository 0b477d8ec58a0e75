/** A selection with one id more or less. */
export function toggleSelected(selected: ReadonlySet<string>, id: string): ReadonlySet<string> {
  return selected.has(id)
    ? new Set([...selected].filter((each) => each !== id))
    : new Set([...selected, id]);
}
