import type { Palette } from "../shared/palette.ts";

const colours = ["accent", "warn", "good", "better", "wait"] as const;
const dashes = [[], [7, 4], [2, 3]] as const;

/** How the line of a target looks: colours repeat with other dashes. */
interface LineLook {
  readonly colour: keyof Palette;
  readonly dash: readonly number[];
}

export function lineLook(index: number): LineLook {
  return {
    colour: colours[index % colours.length] ?? "accent",
    dash: dashes[Math.floor(index / colours.length) % dashes.length] ?? [],
  };
}
