/** Buckets of histograms of durations, in seconds. */
export const secondsBuckets = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300];
