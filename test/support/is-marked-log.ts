const lostPattern = /^\(lines of the worker may be missing here: /;
const takeoverPattern = /^Another pod takes over: attempt \d+ begins$/;

/**
 * Whether a job's log holds what its pods printed: of each pod its lines in their order, each once
 * and none without those before it, and for each pod of which some are missing a line that says so.
 * All lines of a job differ.
 */
export function isMarkedLog(
  texts: readonly string[],
  printed: readonly (readonly string[])[],
): boolean {
  const lost = texts.filter((text) => lostPattern.test(text)).length;
  const takeovers = texts.filter((text) => takeoverPattern.test(text)).length;
  const parts = printed.map((lines) => {
    const own = new Set(lines);
    const found = texts.filter((text) => own.has(text));
    return {
      count: found.length,
      isPart: found.every((text, index) => text === lines[index]),
      isWhole: found.length === lines.length,
    };
  });
  const recorded = parts.reduce((sum, { count }) => sum + count, 0);
  return (
    recorded + lost + takeovers === texts.length &&
    parts.every(({ isPart }) => isPart) &&
    parts.filter(({ isWhole }) => !isWhole).length <= lost
  );
}
