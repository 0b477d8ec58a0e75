/** In a pattern `*` is any characters but slashes, and `**` any characters at all. */
export function isGlobMatch(glob: string, value: string): boolean {
  const source = glob.replaceAll(/\*\*|\*|[^*]+/g, (part) => {
    if (part === "**") return ".*";
    return part === "*" ? "[^/]*" : part.replaceAll(/[\\^$.+?()[\]{}|]/g, "\\$&");
  });
  return new RegExp(`^${source}$`).test(value);
}
