const lostPattern = /^\(lines of the worker may be missing here: /;
/** What the service says besides: why the cluster ended a pod, and that another goes on. */
const notePattern =
  /^\(the worker's pod was evicted, .*\)$|^Another pod takes over: attempt \d+ begins$/;

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
  const notes = texts.filter((text) => notePattern.test(text)).length;
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
    recorded + lost + notes === texts.length &&
    parts.every(({ isPart }) => isPart) &&
    parts.filter(({ isWhole }) => !isWhole).length <= lost
  );
}
