import { z } from "zod";
import { service } from "../session/service.ts";
import { loadArtifact } from "../session/load-artifact.ts";

const values = z.array(z.object({ name: z.string(), type: z.string() }));

/** What the page reads of a job's report; reports of earlier versions lack it. */
const report = z.object({
  interface: z.object({ opset: z.number().nullable(), inputs: values, outputs: values }).optional(),
});
export type ModelInterface = NonNullable<z.infer<typeof report>["interface"]>;

/** What the model of a job takes and gives; undefined where its report does not say. */
export async function loadInterface(jobId: string): Promise<ModelInterface | undefined> {
  const { artifacts } = await service.call("listArtifacts", { params: { id: jobId } });
  const content = await loadArtifact({ id: jobId, artifacts }, "report");
  return report.optional().parse(content)?.interface;
}
