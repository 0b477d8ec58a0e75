import { Publication, type PublicationContext } from "./publication.ts";

/** The publications of all open reports. */
export class OpenPublications {
  readonly #context: PublicationContext;
  readonly #signal: AbortSignal;
  readonly #byReport = new Map<string, Publication>();
  readonly #running = new Set<Promise<void>>();

  constructor(context: PublicationContext, signal: AbortSignal) {
    this.#context = context;
    this.#signal = signal;
  }

  async startDue(): Promise<void> {
    const open = await this.#context.records.reports.listOpen();
    this.#dropClosed(new Set(open.map(({ id }) => id)));
    for (const report of open) {
      const publication = this.#byReport.get(report.id) ?? new Publication(this.#context);
      this.#byReport.set(report.id, publication);
      if (!publication.isDue) continue;
      const work = publication
        .publish(report, this.#signal)
        .finally(() => this.#running.delete(work));
      this.#running.add(work);
    }
  }

  async settled(): Promise<void> {
    await Promise.allSettled(this.#running);
  }

  #dropClosed(open: ReadonlySet<string>): void {
    for (const [id, { isBusy }] of this.#byReport) {
      if (!open.has(id) && !isBusy) this.#byReport.delete(id);
    }
  }
}
