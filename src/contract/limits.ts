/** Limits of the service that callers can reach. Each is documented in the README. */
export const limits = {
  /** Largest JSON body, bytes. */
  jsonBodyBytes: 4 * 1024 * 1024,
  /** Largest `wait` of `Prefer: wait=N`, seconds. */
  preferWaitSeconds: 60,
  /** Jobs or batches a page, by default and at most. */
  pageDefault: 50,
  pageMax: 200,
  /** How long an Idempotency-Key is remembered, hours. */
  idempotencyHours: 24,
  /** Interval of pings in event streams, seconds. */
  pingSeconds: 15,
} as const;

/** How often a worker of a job, or of one step of it, is started at most. */
export const maxAttempts = 3;

/** Longest texts in records, resources and events, characters. */
export const textLimits = {
  name: 200,
  reason: 64,
  statusMessage: 1024,
  errorMessage: 4096,
  progressMessage: 500,
  telemetryWarning: 512,
  batchFailure: 512,
} as const;
