/** Limits of the service that callers can reach. The reference page lists them. */
export const limits = {
  /** Largest JSON body, bytes. */
  jsonBodyBytes: 4 * 1024 * 1024,
  /** Largest JSON body of a worker, bytes: twice the largest event, since it is read at one go. */
  workerBodyBytes: 256 * 1024,
  /**
   * Memory for bodies of requests under way and for answers that are not sent yet, bytes: of all
   * projects, of strangers and of workers, and of each project, address and job of these.
   */
  bodyMemory: {
    projects: { all: 192 * 1024 ** 2, perCaller: 64 * 1024 ** 2 },
    strangers: { all: 64 * 1024 ** 2, perCaller: 8 * 1024 ** 2 },
    workers: { all: 64 * 1024 ** 2, perCaller: 1024 ** 2 },
  },
  /** Largest event of GitHub, bytes: events of check runs have some 20,000. */
  githubEventBytes: 1024 * 1024,
  /** Events of GitHub that are read at once, of all senders and of one address. */
  githubEventsAtOnce: 64,
  githubEventsAtOncePerAddress: 16,
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
  /** Names and sources of models that one answer has. */
  modelVersions: 500,
  /** Bytes of a page of jobs, which ends earlier where they are large; one job may have more. */
  pageBytes: 4 * 1024 * 1024,
  /** Largest job in the records, bytes: the largest request and all that a worker may report. */
  jobDocumentBytes: 1024 * 1024,
  /** Models and recipes of the jobs of a request, bytes: each job has its own copy of both. */
  requestedJobsBytes: 16 * 1024 * 1024,
  /** Suites of a list, and batches and jobs of a suite's history, the newest. */
  listedSuites: 200,
  historyBatches: 100,
  historyJobs: 2000,
  /** Jobs that are counted for a list, of each status, since each costs a step of a search. */
  countedJobs: 10_000,
  /** Longest validity of a link to an artifact, seconds: a week, as of presigned S3 requests. */
  linkSeconds: 604_800,
  /** Webhooks of a project. */
  webhooks: 16,
  /** Attempts at a delivery, the first at once, each later one after four times the wait. */
  webhookAttempts: 10,
  webhookFirstRetrySeconds: 5,
  webhookLongestRetrySeconds: 86_400,
  /** Time for an answer to a delivery, seconds, and how much of its body is read, bytes. */
  webhookAnswerSeconds: 15,
  webhookAnswerBytes: 65_536,
  /** Deliveries of a webhook that are under way at once. */
  webhookDeliveriesAtOnce: 8,
  /** Deliveries of a webhook that wait: the events of the largest batch, each job's four. */
  webhookWaitingDeliveries: 10_000,
  /** How long deliveries are kept, days. */
  webhookDeliveryDays: 30,
  /** How long an Idempotency-Key is remembered, hours. */
  idempotencyHours: 24,
  /** Interrupted uploads that are kept for a project, and their bytes: one of the largest model. */
  partialUploads: 32,
  partialUploadBytes: 64 * 1024 ** 3,
  /** Files of a model, and bytes of the manifest that names them: exporters write one a weight. */
  manifestFiles: 1000,
  manifestBytes: 512 * 1024,
  /** Manifests of a project: each has a row for every file. */
  manifests: 10_000,
  /** Default lifetime of a token, days. */
  tokenDays: 90,
  /** How long a sign-in link is valid that nobody used, minutes. */
  signInLinkMinutes: 60,
  /** How long after the service starts its file signs the first administrator in, days. */
  firstSignInDays: 30,
  /** How long a person stays signed in, days. */
  sessionDays: 14,
  /** How long a person stays signed in who signed in at an issuer, which says the groups, hours. */
  singleSignOnHours: 12,
  /** Groups of a person that count, and their longest names, characters. */
  groups: 200,
  groupLength: 200,
  /** How long groups count after their person signed in at the issuer, days. */
  confirmedDays: 30,
  /** People who are found by an e-mail address, which several can have. */
  foundPeople: 20,
  /** Members of a project: groups hold more people. */
  members: 1000,
  /** How long a token that was replaced stays valid, hours: its users need time to change it. */
  rotationHours: 24,
  /** Interval of pings in event streams, seconds. */
  pingSeconds: 15,
  /** How often an open stream checks its token, seconds: a revocation takes effect in five. */
  accessCheckSeconds: 4,
  /**
   * Lines and bytes of a log that are read at once. Of a reader who takes nothing they are in memory
   * twice, as they were read and as they are sent.
   */
  logPageLines: 500,
  logPageBytes: 131_072,
  /** Least time between two pieces of a log that is followed, milliseconds. */
  logIntervalMs: 130,
  /** Least time between two pieces of `GET /events`, milliseconds: each is a search of its own. */
  eventIntervalMs: 250,
  /** How long `GET /events` still sends that a job or batch was deleted, days. */
  deletionDays: 7,
  /** Streams of `GET /events` at once, of all projects and of each. */
  eventStreams: { all: 1000, perCaller: 50 },
} as const;

/**
 * Slowest download of a model: fewer bytes within the time fail the job. A host that drips would
 * hold a worker for as long as it likes. Time for connecting and for retries counts.
 */
export const slowestDownload = { bytes: 1024 * 1024, seconds: 60 } as const;

/**
 * A worker process of this machine that sends no request for so long, seconds, is stopped, and its
 * job is tried again. Workers report every 10 s, but one that plans a large model is busy longer.
 */
export const silentWorkerSeconds = 600;

/**
 * How long a project waits at most, seconds, while others have all workers of this machine: then the
 * youngest job makes way. Each time the same job has done so the wait is twice as long, up to
 * `doublings` times, so that long jobs get to their end.
 */
export const projectWait = { seconds: 600, doublings: 3 } as const;

/** What callers may ask for, where the settings say nothing else. */
export const quotas = {
  /** Jobs of a project that wait: ten batches of the largest size. */
  waitingJobs: 20_000,
  /** Requests of a project a minute: a third of what the service answers on one core. */
  requestsPerMinute: 60_000,
  /**
   * Exchanges of identity tokens by one address a minute, which need no access token: each costs a
   * signature's check. Runners of one company can share an address, and the service a proxy.
   */
  exchangesPerMinute: 600,
  /**
   * Requests of a worker a minute, each 32 KiB of its events, each assignment and each search of its
   * pod's log as several: a worker that reports a lot sends a fifth, and all of them are a twentieth of
   * a core.
   */
  workerRequestsPerMinute: 3_000,
  /** Bytes of a project's uploads and artifacts: sixteen of the largest model. */
  storedBytes: 1024 ** 4,
} as const;

/** How often a worker of a job, or of one step of it, is started at most. */
export const maxAttempts = 3;

/**
 * How often a worker may be ended besides by a disruption: in a cluster preemption, eviction, nodes
 * that are drained or lost; else the service's death, which the memory of the job can cause.
 */
export const maxDisruptions = 12;

/** Longest texts in records, resources and events, characters. */
export const textLimits = {
  name: 200,
  reason: 64,
  statusMessage: 1024,
  /** Of conditions, several of which repeat the status message. */
  conditionMessage: 256,
  errorMessage: 4096,
  progressMessage: 500,
  telemetryWarning: 512,
  batchFailure: 512,
} as const;
