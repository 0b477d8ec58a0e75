import { batch, computed, type ReadonlySignal, signal, type Signal } from "@preact/signals";
import type { JobFilters, JobOrder } from "./job-filters.ts";
import type { ServiceChange } from "../../client/follow-logs.ts";
import type { JobSummary } from "../../contract/jobs/job-summary.ts";
import { jobsOfFirstView } from "../../contract/page-addresses.ts";
import { groupByBasis } from "../shared/accuracy-basis.ts";
import { onReconnect } from "../shared/connection-state.ts";
import { watchChanges } from "../live/service-changes.ts";
import { service } from "../session/service.ts";

const pageSize = String(jobsOfFirstView);
/** A list that is sorted is read as far as this. */
const mostSorted = 2000;
const sortedPageSize = "200";

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
  readonly #sources = new Map<string, Promise<string | undefined>>();
  #cursor: string | null = null;
  #newest: Promise<void> | undefined;
  #more: Promise<void> | undefined;

  constructor(filters: JobFilters) {
    this.#filters = filters;
    this.unseen = computed(() => this.#unseenIds.value.size);
  }

  /** Keeps the list up to date. @returns a function that ends it */
  follow(): () => void {
    const stopChanges = watchChanges((change) => batch(() => this.#apply(change)));
    const stopReturns = onReconnect(() => {
      if (this.error.peek() !== undefined) void this.load("newest");
    });
    return () => {
      stopChanges();
      stopReturns();
    };
  }

  /** Whether more is loaded as somebody scrolls: a sorted list is read at once. */
  get grows(): boolean {
    return this.hasMore && this.#filters.sort === "newest";
  }

  get order(): JobOrder {
    return this.#filters.sort;
  }

  /** In how many ways the accuracy of jobs was measured that are sorted by it. */
  get accuracyWays(): number {
    if (this.#filters.sort !== "most accurate") return 0;
    return new Set(this.rows.value?.flatMap((row) => row.peek().accuracyBasis ?? [])).size;
  }

  get hasMore(): boolean {
    return this.#cursor !== null;
  }

  /** Loads the newest, in place of those that are there, or what follows those. */
  load(what: "newest" | "more"): Promise<void> {
    if (what === "newest") return (this.#newest ??= this.#loadNewest());
    return this.#newest ?? (this.#more ??= this.#loadMore());
  }

  async #loadNewest(): Promise<void> {
    await this.#more;
    await this.#loadPage(null);
    this.#newest = undefined;
  }

  async #loadMore(): Promise<void> {
    await this.#loadPage(this.#cursor);
    this.#more = undefined;
  }

  async #loadPage(cursor: string | null): Promise<void> {
    const changes: ServiceChange[] = [];
    const stop = watchChanges((change) => changes.push(change));
    try {
      const { jobs, nextCursor } = await this.#fetchJobs(cursor);
      this.#cursor = nextCursor;
      batch(() => {
        this.#show(jobs, cursor);
        // What was read may be older than these.
        for (const change of changes) this.#apply(change);
      });
    } catch (error) {
      this.error.value = error;
    } finally {
      stop();
    }
  }

  /** A page of jobs, or of a sorted list all that it is read for. */
  async #fetchJobs(cursor: string | null) {
    const { sort } = this.#filters;
    let page = await this.#fetchPage(cursor);
    const jobs = [...page.jobs];
    while (sort !== "newest" && page.nextCursor !== null && jobs.length < mostSorted) {
      page = await this.#fetchPage(page.nextCursor);
      jobs.push(...page.jobs);
    }
    const sorted = jobs.toSorted(comparisons[sort]);
    const ranked = sort === "most accurate" ? groupByBasis(sorted).flat() : sorted;
    return { jobs: ranked, nextCursor: page.nextCursor };
  }

  #fetchPage(cursor: string | null) {
    const { status, label, search, sort, ...others } = this.#filters;
    const lists = { status: [...status], label: [...label], search: [...search] };
    const limit = sort === "newest" ? pageSize : sortedPageSize;
    const query = { ...others, ...lists, limit, cursor: cursor ?? undefined };
    return service.call("listJobSummaries", { query });
  }

  /** Shows jobs after those that are there, or in place of them where they have no cursor. */
  #show(jobs: readonly JobSummary[], cursor: string | null): void {
    const added = jobs.map((job) => signal(job));
    if (cursor === null) this.#byId.clear();
    for (const row of added) this.#byId.set(row.peek().id, row);
    this.rows.value = cursor === null ? added : [...(this.rows.value ?? []), ...added];
    if (cursor === null) this.#unseenIds.value = new Set();
    this.error.value = undefined;
  }

  #apply({ job, deletedJob }: ServiceChange): void {
    if (deletedJob !== undefined) this.#remove(deletedJob);
    if (job === undefined) return;
    const row = this.#byId.get(job.id);
    if (row !== undefined) row.value = job;
    else if (this.#isNew(job)) void this.#countNew(job);
  }

  /** Counts a job that may belong to the list: a row does not say the source of its model. */
  async #countNew({ id, model: name }: JobSummary): Promise<void> {
    const { model = name } = this.#filters;
    const mayBeSource = model.includes(":");
    if (model !== name && !(mayBeSource && (await this.#findSource(id)) === model)) return;
    if (this.#byId.has(id)) return;
    this.#unseenIds.value = new Set([...this.#unseenIds.value, id]);
  }

  /** Asks once for each job. */
  #findSource(id: string): Promise<string | undefined> {
    const found =
      this.#sources.get(id) ??
      service.call("getJob", { params: { id } }).then(
        ({ model }) => model.source,
        () => undefined,
      );
    this.#sources.set(id, found);
    return found;
  }

  #remove(id: string): void {
    const row = this.#byId.get(id);
    if (this.#byId.delete(id)) this.rows.value = this.rows.value?.filter((other) => other !== row);
    const unseen = new Set(this.#unseenIds.value);
    if (unseen.delete(id)) this.#unseenIds.value = unseen;
  }

  /** Whether a job without a row belongs to the part of the list that was read. */
  #isNew(job: JobSummary): boolean {
    const rows = this.rows.peek();
    if (rows === undefined || !fitsFilters(job, this.#filters)) return false;
    return !this.hasMore || rows.some((row) => row.peek().id < job.id);
  }
}

/** Puts jobs without the figure last; those that are equal stay in the order of the service. */
function byFigure(figure: (job: JobSummary) => number | null) {
  return (a: JobSummary, b: JobSummary) => (figure(a) ?? Infinity) - (figure(b) ?? Infinity);
}

const comparisons: Readonly<Record<JobOrder, (a: JobSummary, b: JobSummary) => number>> = {
  newest: () => 0,
  smallest: byFigure(({ figures }) => figures.resultBytes),
  "most accurate": byFigure(({ figures }) => (figures.sqnrDb === null ? null : -figures.sqnrDb)),
  fastest: byFigure(({ figures }) => figures.latencyRatio),
  longest: byFigure(({ startedAt, finishedAt }) => {
    if (startedAt === null || finishedAt === null) return null;
    return Date.parse(startedAt) - Date.parse(finishedAt);
  }),
};

/** Whether a list with the filters has a job, as far as its row says: it has no source. */
function fitsFilters(job: JobSummary, filters: JobFilters) {
  const { status, target, model, batch, label, search } = filters;
  const name = job.model.toLowerCase();
  return (
    search.every((text) => name.includes(text.toLowerCase())) &&
    (status.length === 0 || status.includes(job.status)) &&
    (target === undefined || target === job.target) &&
    (model === undefined || model === job.model || model.includes(":")) &&
    (batch === undefined || batch === job.batchId) &&
    label.every((each) => hasLabel(job.labels, each))
  );
}

/** A filter is `key` or `key=value`. */
function hasLabel(labels: Readonly<Record<string, string>>, filter: string): boolean {
  const [key = ""] = filter.split("=", 1);
  return key in labels && (key === filter || filter === `${key}=${labels[key]}`);
}
