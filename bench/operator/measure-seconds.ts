import type { KubernetesClient } from "../../src/kubernetes/kubernetes-client.ts";
import { createReflector } from "../../src/kubernetes/reflector.ts";
import type { KubernetesObject, ResourceType, Stored } from "../../src/kubernetes/resources.ts";

export interface Load<T extends KubernetesObject> {
  readonly make: () => Named<T>;
  readonly isDone: (object: Stored<T>) => boolean;
}

export type Named<T> = T & { readonly metadata: { readonly name: string } };

const submissionsAtOnce = 20;

/** From the first submission of so many until the last one is done. */
export async function measureSeconds<T extends KubernetesObject>(
  client: KubernetesClient,
  type: ResourceType<T>,
  count: number,
  { make, isDone }: Load<T>,
): Promise<number> {
  const objects = Array.from({ length: count }, make);
  const open = new Set(objects.map(({ metadata }) => metadata.name));
  const allDone = Promise.withResolvers<void>();
  const countIfDone = (object: Stored<T>) => {
    if (!isDone(object) || !open.delete(object.metadata.name)) return;
    if (open.size % 200 === 0)
      process.stdout.write(`${type.plural}: ${count - open.size} of ${count}\n`);
    if (open.size === 0) allDone.resolve();
  };
  const reflector = createReflector({
    client,
    type,
    onAdded: countIfDone,
    onUpdated: countIfDone,
    onError: allDone.reject,
  });
  await reflector.synced;
  const start = performance.now();
  const waiting = objects.values();
  await Promise.all(
    Array.from({ length: submissionsAtOnce }, async () => {
      for (const object of waiting) await client.create(type, object);
    }),
  );
  await allDone.promise;
  const seconds = (performance.now() - start) / 1000;
  await reflector.stop();
  return seconds;
}
