import { missingReason, requirements } from "./requirements.ts";

/** False where a control plane can be started, else the sentence to skip with: `test(name, { skip: clusterMissing }, …)`. */
export const clusterMissing: string | false = await missingReason(requirements.clusterMissing);

/** The same for charts. */
export const helmMissing: string | false = await missingReason(requirements.helmMissing);

/** The same for what GitOps tools make of a resource. */
export const healthMissing: string | false = await missingReason(requirements.healthMissing);

/** The same for Kueue. */
export const kueueMissing: string | false = await missingReason(requirements.kueueMissing);

/** The same for files of Go modules. */
export const goMissing: string | false = await missingReason(requirements.goMissing);

/** The same for certificates. */
export const opensslMissing: string | false = await missingReason(requirements.opensslMissing);

/** The same for workflows. */
export const actMissing: string | false = await missingReason(requirements.actMissing);

/** The same for the linter of workflows. */
export const actionlintMissing: string | false = await missingReason(
  requirements.actionlintMissing,
);

/** The same for a node that runs pods. */
export const nodeMissing: string | false = await missingReason(requirements.nodeMissing);

/** The same for a processor of other instruction sets than this one's. */
export const valgrindMissing: string | false = await missingReason(requirements.valgrindMissing);

/** The same for an S3 server. */
export const s3Missing: string | false = await missingReason(requirements.s3Missing);

/** The same for a browser. */
export const chromiumMissing: string | false = await missingReason(requirements.chromiumMissing);

/** The same for Firefox. */
export const firefoxMissing: string | false = await missingReason(requirements.firefoxMissing);

/** The same for a PostgreSQL server. */
export const postgresMissing: string | false = await missingReason(requirements.postgresMissing);

/** The same for alerts and dashboards. */
export const prometheusMissing: string | false = await missingReason(
  requirements.prometheusMissing,
);
