import type { Figure } from "./figure.ts";
import { importFigures } from "./import-figures.ts";
import { readSources } from "./read-sources.ts";
import { textFigures } from "./text-figures.ts";

/** Measures `src` and `operator` of a repository. */
export async function measure(root: string): Promise<readonly Figure[]> {
  const all = await readSources(root);
  const measured = all.filter(({ file }) => /^(src|operator)\//.test(file));
  return [...importFigures(measured, all), ...textFigures(measured)];
}
