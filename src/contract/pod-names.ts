import { z } from "zod";

/** Of a Secret, a volume claim, a class. */
export const objectName = z
  .string()
  .max(253)
  .regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/);

/** Of a volume, a namespace, a claim in a pod. */
export const labelName = z
  .string()
  .max(63)
  .regex(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/);

/** Of a label, an annotation, a taint. */
export const qualifiedName = z
  .string()
  .max(317)
  .regex(/^([a-z0-9]([a-z0-9.-]*[a-z0-9])?\/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/);

export const labelValue = z
  .string()
  .max(63)
  .regex(/^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$/);

/** An amount of bytes or of CPU. */
export const quantity = z.string().regex(/^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi)?$/);

/** Objects that have one of the fields and no other of them. */
export function hasExactlyOne(fields: readonly string[]) {
  return {
    check: (object: object) =>
      Object.entries(object).filter(
        ([field, value]) => fields.includes(field) && value !== undefined,
      ).length === 1,
    error: `must have exactly one of ${fields.join(", ")}`,
  };
}
