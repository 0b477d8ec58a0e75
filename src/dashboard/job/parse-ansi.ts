/** A part of a line with the names of its looks. */
interface AnsiPart {
  readonly text: string;
  readonly looks: readonly string[];
}

const colours = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;

/** Operating system commands, such as links, and all other sequences that set no style. */
// oxlint-disable-next-line no-control-regex
const otherSequences = /\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b\[[\d;?]*[A-LN-Za-ln-z]|\x1b[^[\]]/g;
// oxlint-disable-next-line no-control-regex
const lookSequence = /\x1b\[([\d;]*)m/;

/** Splits a line of a terminal into parts of one look each; the texts have no sequences. */
export function parseAnsi(line: string): AnsiPart[] {
  const [first = "", ...rest] = line.replace(otherSequences, "").split(lookSequence);
  const parts: AnsiPart[] = first === "" ? [] : [{ text: first, looks: [] }];
  let looks: readonly string[] = [];
  for (let i = 0; i < rest.length; i += 2) {
    const [codes = "", text = ""] = rest.slice(i, i + 2);
    looks = codes.split(";").map(Number).reduce(applyCode, looks);
    if (text !== "") parts.push({ text, looks });
  }
  return parts;
}

/** Codes of backgrounds and others that the page does not show change nothing. */
function applyCode(looks: readonly string[], code: number): readonly string[] {
  if (code === 0) return [];
  if (code === 1) return [...looks, "ansi-bold"];
  if (code === 2) return [...looks, "ansi-dim"];
  if (code === 22) return looks.filter((look) => look !== "ansi-bold" && look !== "ansi-dim");
  const [plain, bright] = [colours[code - 30], colours[code - 90]];
  const colour = plain ?? (bright && `bright-${bright}`);
  const others = looks.filter((look) => !look.endsWith("-fg"));
  if (colour !== undefined) return [...others, `ansi-${colour}-fg`];
  return code === 39 ? others : looks;
}
