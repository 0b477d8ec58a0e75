/** Limits of the service that callers can reach. Each is documented in the README. */
export const limits = {
  /** Largest JSON body, bytes. */
  jsonBodyBytes: 4 * 1024 * 1024,
  /** Depth of a JSON body: the deepest request has 7, and recursion over it must not overflow. */
  jsonDepth: 32,
  /** Values of a JSON body: the largest batch has a few thousand, and each costs its check. */
  jsonValues: 65_536,
  /** Invalid fields that an answer lists; the others are counted. */
  listedErrors: 20,
  /** Longest pointer or message of a listed field, characters: both can quote the request. */
  listedErrorText: 300,
  /** Largest `wait` of `Prefer: wait=N`, seconds. */
  preferWaitSeconds: 60,
  /** Jobs or batches a page, by default and at most. */
  pageDefault: 50,
  pageMax: 200,
  /** How long an Idempotency-Key is remembered, hours. */
  idempotencyHours: 24,
  /** Interrupted uploads that are kept for a project, and their bytes: one of the largest model. */
  partialUploads: 32,
  partialUploadBytes: 64 * 1024 ** 3,
  /** Interval of pings in event streams, seconds. */
  pingSeconds: 15,
  /** How often an open stream checks its token, seconds: a revocation takes effect in five. */
  accessCheckSeconds: 4,
  /** Lines and bytes of a log that are in memory for one reader; one line may have more. */
  logPageLines: 500,
  logPageBytes: 262_144,
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
