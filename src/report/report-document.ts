import type { Verdict } from "./conclude.ts";
import type { Report } from "./report.ts";

/** The report as JSON, for programs. */
export function reportDocument({ name, url, rows }: Report, { conclusion, title }: Verdict) {
  return {
    version: 1,
    name,
    conclusion,
    title,
    url,
    jobs: rows.map(({ job, id, model, ...row }) => ({
      id,
      model: { name: model },
      ...row,
      ...job,
    })),
  };
}
