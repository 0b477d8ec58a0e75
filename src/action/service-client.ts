import { type Client, createClient } from "../client/create-client.ts";
import { artifactRoutes } from "../contract/routes/artifact-routes.ts";
import { batchRoutes } from "../contract/routes/batch-routes.ts";
import { jobRoutes } from "../contract/routes/job-routes.ts";
import { logRoutes } from "../contract/routes/log-routes.ts";
import { modelRoutes } from "../contract/routes/model-routes.ts";
import { targetRoutes } from "../contract/routes/service-routes.ts";
import { tokenRoutes } from "../contract/routes/token-routes.ts";

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
