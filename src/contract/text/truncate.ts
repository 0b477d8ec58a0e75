const ellipsis = "…";

/**
 * The text, or as much of its start as fits with an ellipsis into `maxLength` UTF-16 units. Never
 * ends with half of a surrogate pair.
 */
export function truncate(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  const end = maxLength - ellipsis.length;
  const last = text.charCodeAt(end - 1);
  const isSplit = last >= 0xd800 && last <= 0xdbff;
  return `${text.slice(0, isSplit ? end - 1 : end)}${ellipsis}`;
}
