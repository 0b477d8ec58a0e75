/**
 * Seconds of processor time for a job, run so many times after one that is not counted. It depends
 * less on other processes than time on the clock, and counts every thread.
 */
export function measureCpuSeconds(job: () => void, times: number): number {
  job();
  const before = process.cpuUsage();
  for (let done = 0; done < times; done++) job();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}
