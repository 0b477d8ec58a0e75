/**
 * A source as it may be shown: without user information and the values of its query, with which
 * signed URLs let everybody in who knows them.
 */
export function redactSource(source: string): string {
  const [scheme] = /^https?:/i.exec(source) ?? [];
  if (scheme === undefined) return source;
  const url = URL.parse(source);
  // A character of a password that is not encoded makes another URL of it, or none.
  if (url === null) return `${scheme}//***`;
  if (url.search === "" && url.username === "" && url.password === "") return source;
  const names = [...new Set(url.searchParams.keys())].map((name) => encodeURIComponent(name));
  const query = names.length > 0 ? `?${names.map((name) => `${name}=***`).join("&")}` : "";
  return `${url.origin}${url.pathname}${query}`;
}
