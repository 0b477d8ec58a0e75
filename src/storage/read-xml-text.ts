const entities: Readonly<Record<string, string>> = {
  "&quot;": '"',
  "&#34;": '"',
  "&apos;": "'",
  "&#39;": "'",
  "&lt;": "<",
  "&gt;": ">",
  "&amp;": "&",
};

/** Text of the first element of a name in an answer of S3; undefined if there is none. */
export function readXmlText(xml: string, name: string): string | undefined {
  const text = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1];
  return text?.replace(/&[#a-z0-9]+;/g, (entity) => entities[entity] ?? entity);
}

/** Contents of all elements of a name that do not contain one another. */
export function readXmlElements(xml: string, name: string): string[] {
  const matches = xml.matchAll(new RegExp(`<${name}>(.*?)</${name}>`, "gs"));
  return [...matches].map(([, content = ""]) => content);
}
