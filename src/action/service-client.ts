import { type Client, createClient } from "../client/create-client.ts";
import { artifactRoutes } from "../contract/artifact-routes.ts";
import { batchRoutes } from "../contract/batch-routes.ts";
import { jobRoutes } from "../contract/job-routes.ts";
import { logRoutes } from "../contract/log-routes.ts";
import { modelRoutes } from "../contract/model-routes.ts";
import { targetRoutes } from "../contract/target-routes.ts";
import { tokenRoutes } from "../contract/token-routes.ts";

const { exchangeToken } = tokenRoutes;

/** What a step asks of the service. */
const routes = {
  ...artifactRoutes,
  ...batchRoutes,
  ...jobRoutes,
  ...logRoutes,
  ...modelRoutes,
  ...targetRoutes,
  exchangeToken,
};

export type ServiceClient = Client<keyof typeof routes>;

export function createServiceClient(
  connection: Omit<Parameters<typeof createClient>[0], "routes">,
): ServiceClient {
  return createClient({ ...connection, routes });
}
