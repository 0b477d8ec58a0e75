/** A source under a name, with its jobs. */
export interface ModelVersion {
  readonly name: string;
  readonly source: string;
  readonly jobs: number;
  readonly newestJobId: string;
}

export interface NamedModel {
  readonly name: string;
  readonly jobs: number;
  /** The newest first. */
  readonly versions: readonly ModelVersion[];
}

/** Versions by the names of their models, in the order in which these are first named. */
export function groupModels(versions: readonly ModelVersion[]): NamedModel[] {
  return [...Map.groupBy(versions, ({ name }) => name)].map(([name, ofName]) => ({
    name,
    versions: ofName,
    jobs: ofName.reduce((sum, { jobs }) => sum + jobs, 0),
  }));
}
