import { batch, computed, type ReadonlySignal, signal, type Signal } from "@preact/signals";
import type { JobFilters } from "./job-filters.ts";
import type { ServiceChange } from "../../client/follow-logs.ts";
import { type JobSummary, summarizeJob } from "../../contract/jobs/job-summary.ts";
import { isTerminal } from "../../contract/jobs/status.ts";
import { watchChanges, onReconnect } from "../live/service-changes.ts";
import { service } from "../session/service.ts";

/** Of one request: the first view shows less. */
const pageSize = "50";

/** Jobs, newest first: each is a signal of its own, so that its change redraws one row. */
export class JobList {
  /** Undefined until the first of them are there. */
  readonly rows = signal<readonly Signal<JobSummary>[] | undefined>(undefined);
  readonly error = signal<unknown>(undefined);
  /** How many came since, which are shown when somebody asks for them. */
  readonly unseen: ReadonlySignal<number>;
  readonly #filters: JobFilters;
  readonly #unseenIds = signal<ReadonlySet<string>>(new Set());
  readonly #byId = new Map<string, Signal<JobSummary>>();
  #cursor: string | null = null;
  #loading: Promise<void> | undefined;

  constructor(filters: JobFilters) {
    this.#filters = filters;
    this.unseen = computed(() => this.#unseenIds.value.size);
  }

  /** Keeps the list up to date. @returns a function that ends it */
  follow(): () => void {
    const stopChanges = gatherJobChanges((changes) =>
      batch(() => {
        for (const change of changes) this.#apply(change);
      }),
    );
    const stopDeletions = watchChanges(({ deletedJob }) => {
      if (deletedJob !== undefined) batch(() => this.#remove(deletedJob));
    });
    const stopReturns = onReconnect(() => {
      if (this.error.peek() !== undefined) void this.load("newest");
    });
    return () => {
      stopChanges();
      stopDeletions();
      stopReturns();
    };
  }

  get hasMore(): boolean {
    return this.#cursor !== null;
  }

  /** Loads the newest, in place of those that are there, or what follows those. */
  load(what: "newest" | "more"): Promise<void> {
    const cursor = what === "more" ? this.#cursor : null;
    this.#loading ??= this.#loadPage(cursor)
      .catch((error: unknown) => (this.error.value = error))
      .then(() => (this.#loading = undefined));
    return this.#loading;
  }

  async #loadPage(cursor: string | null): Promise<void> {
    const { status, label, ...others } = this.#filters;
    const query = { ...others, status: [...status], label: [...label], limit: pageSize };
    const page = await service.call("listJobSummaries", {
      query: { ...query, cursor: cursor ?? undefined },
    });
    const added = page.jobs.map((job) => signal(job));
    if (cursor === null) this.#byId.clear();
    for (const row of added) this.#byId.set(row.peek().id, row);
    this.#cursor = page.nextCursor;
    batch(() => {
      this.rows.value = cursor === null ? added : [...(this.rows.value ?? []), ...added];
      if (cursor === null) this.#unseenIds.value = new Set();
      this.error.value = undefined;
    });
  }

  #apply(change: JobChange): void {
    const row = this.#byId.get(change.id);
    if (row !== undefined) {
      row.value = applyJobChange(row.value, change);
      if (isTerminal(change.status)) void refreshRow(row);
    } else if (this.#isNew(change)) {
      this.#unseenIds.value = new Set([...this.#unseenIds.value, change.id]);
    }
  }

  #remove(id: string): void {
    const row = this.#byId.get(id);
    if (this.#byId.delete(id)) this.rows.value = this.rows.value?.filter((other) => other !== row);
    const unseen = new Set(this.#unseenIds.value);
    if (unseen.delete(id)) this.#unseenIds.value = unseen;
  }

  #isNew(change: JobChange): boolean {
    const rows = this.rows.peek();
    const newest = rows?.[0]?.peek().id ?? "";
    return rows !== undefined && change.id > newest && fitsFilters(change, this.#filters);
  }
}

function applyJobChange(job: JobSummary, { progress, ...change }: JobChange): JobSummary {
  return { ...job, ...change, progress: progress ?? job.progress };
}

/** A change says that a job has ended, and not with which figures. */
async function refreshRow(row: Signal<JobSummary>): Promise<void> {
  const { id } = row.peek();
  const job = await service.call("getJob", { params: { id } }).catch(() => undefined);
  if (job !== undefined) row.value = summarizeJob(job);
}

/**
 * Gathers changes of jobs until the next frame: of each job the last one counts.
 * @returns a function that ends it
 */
function gatherJobChanges(apply: (changes: readonly JobChange[]) => void): () => void {
  const gathered = new Map<string, JobChange>();
  let frame = 0;
  const applyGathered = () => {
    frame = 0;
    apply([...gathered.values()]);
    gathered.clear();
  };
  const stop = watchChanges(({ job }) => {
    if (job === undefined) return;
    gathered.set(job.id, job);
    if (frame === 0) frame = requestAnimationFrame(applyGathered);
  });
  return () => {
    stop();
    cancelAnimationFrame(frame);
  };
}

type JobChange = NonNullable<ServiceChange["job"]>;

/** Whether a list with the filters has a job that changed, as far as its change says. */
function fitsFilters(change: JobChange, { status, target, batch, label }: JobFilters) {
  return (
    (status.length === 0 || status.includes(change.status)) &&
    (target === undefined || target === change.target) &&
    (batch === undefined || batch === change.batchId) &&
    label.every((each) => hasLabel(change.labels, each))
  );
}

/** A filter is `key` or `key=value`. */
function hasLabel(labels: Readonly<Record<string, string>>, filter: string): boolean {
  const [key = ""] = filter.split("=", 1);
  return key in labels && (key === filter || filter === `${key}=${labels[key]}`);
}
