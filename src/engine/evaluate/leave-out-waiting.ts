/**
 * The milliseconds of a run of one thread, without those for which others had the processor.
 * @param before this process's resource usage at the run's beginning; the run has just ended
 */
export function leaveOutWaiting(milliseconds: number, before: NodeJS.ResourceUsage): number {
  const after = process.resourceUsage();
  if (after.involuntaryContextSwitches === before.involuntaryContextSwitches) return milliseconds;
  const processorUs =
    after.userCPUTime - before.userCPUTime + after.systemCPUTime - before.systemCPUTime;
  return Math.min(milliseconds, processorUs / 1000);
}
