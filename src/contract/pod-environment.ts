import { z } from "zod";
import { hasExactlyOne, objectName } from "./pod-names.ts";

const keyReference = z.strictObject({
  name: objectName,
  key: z.string().min(1).max(253),
  optional: z.boolean().exactOptional(),
});

const valueSources = {
  secretKeyRef: keyReference.exactOptional(),
  configMapKeyRef: keyReference.exactOptional(),
  fieldRef: z.strictObject({ fieldPath: z.string().min(1).max(253) }).exactOptional(),
};
const oneSource = hasExactlyOne(Object.keys(valueSources));
const oneValue = hasExactlyOne(["value", "valueFrom"]);

const variableName = z
  .string()
  .max(253)
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, {
    error: "must be letters, digits and '_', the first no digit",
  })
  .refine((name) => name !== "TMPDIR" && !name.startsWith("MOS_"), {
    error: "must not be TMPDIR or begin with MOS_: the operator sets these",
  });

/** Variables of a container, with values or from a Secret, a ConfigMap or a field of the pod. */
export const podEnvironment = z
  .array(
    z
      .strictObject({
        name: variableName,
        value: z.string().max(32_768).exactOptional(),
        valueFrom: z
          .strictObject(valueSources)
          .refine(oneSource.check, { error: oneSource.error })
          .exactOptional(),
      })
      .refine(oneValue.check, { error: oneValue.error }),
  )
  .max(100);
