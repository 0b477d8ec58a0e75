import { z } from "zod";
import { hasExactlyOne, dnsLabel, objectName, quantity } from "../text/kubernetes-names.ts";

const fileMode = z.int().min(0).max(0o777).exactOptional();
const projection = {
  items: z
    .array(
      z.strictObject({
        key: z.string().min(1).max(253),
        path: z.string().min(1).max(4096),
        mode: fileMode,
      }),
    )
    .max(100)
    .exactOptional(),
  defaultMode: fileMode,
  optional: z.boolean().exactOptional(),
};
const claimSpec = z.strictObject({
  accessModes: z
    .array(z.enum(["ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany", "ReadOnlyMany"]))
    .min(1),
  storageClassName: objectName.exactOptional(),
  resources: z.strictObject({ requests: z.strictObject({ storage: quantity }) }),
});

/** The kinds that the Pod Security Standard `restricted` allows, without tokens of accounts. */
const volumeSources = {
  configMap: z.strictObject({ name: objectName, ...projection }).exactOptional(),
  secret: z.strictObject({ secretName: objectName, ...projection }).exactOptional(),
  emptyDir: z
    .strictObject({
      medium: z.enum(["", "Memory"]).exactOptional(),
      sizeLimit: quantity.exactOptional(),
    })
    .exactOptional(),
  persistentVolumeClaim: z
    .strictObject({ claimName: objectName, readOnly: z.boolean().exactOptional() })
    .exactOptional(),
  ephemeral: z
    .strictObject({ volumeClaimTemplate: z.strictObject({ spec: claimSpec }) })
    .exactOptional(),
  csi: z
    .strictObject({
      driver: z.string().min(1).max(253),
      readOnly: z.boolean().exactOptional(),
      fsType: z.string().max(100).exactOptional(),
      volumeAttributes: z.record(z.string(), z.string()).exactOptional(),
      nodePublishSecretRef: z.strictObject({ name: objectName }).exactOptional(),
    })
    .exactOptional(),
};
const oneSource = hasExactlyOne(Object.keys(volumeSources));

/** Volumes that every worker pod has. */
const ownedVolumes: readonly string[] = ["work", "token"];

export const podVolumes = z
  .array(
    z
      .strictObject({
        name: dnsLabel.refine((name) => !ownedVolumes.includes(name), {
          error: `must not be ${ownedVolumes.join(" or ")}: the operator adds these volumes`,
        }),
        ...volumeSources,
      })
      .refine(oneSource.check, { error: oneSource.error }),
  )
  .max(30)
  .refine((volumes) => new Set(volumes.map(({ name }) => name)).size === volumes.length, {
    error: "must not have a name twice",
  });

/** Folders of every worker that a mount would hide: its work, its token, its program. */
const ownedFolders = ["/work", "/var/run/secrets/modeloptimization.dev", "/app"];

function hidesOwnedFolder(mountPath: string): boolean {
  const path = `${mountPath.replace(/\/+$/, "")}/`;
  return ownedFolders.some((own) => path.startsWith(`${own}/`) || `${own}/`.startsWith(path));
}

export const podVolumeMounts = z
  .array(
    z.strictObject({
      name: dnsLabel,
      mountPath: z
        .string()
        .max(4096)
        .regex(/^\/[^:]*$/, { error: "must be an absolute path without ':'" })
        .refine((path) => !path.includes("/..") && !hidesOwnedFolder(path), {
          error: `must neither hide nor lie in ${ownedFolders.join(", ")}`,
        }),
      subPath: z.string().max(4096).exactOptional(),
      readOnly: z.boolean().exactOptional(),
    }),
  )
  .max(30);
