/** The API server is trusted to answer with objects of the requested type. */
export function parseResponseJson<T>(json: string): T {
  return JSON.parse(json);
}
