import { useMemo } from "preact/hooks";
import { service } from "../session/service.ts";
import { mayDo } from "../session/session.ts";
import { Field } from "../shared/field.tsx";
import { findUploadHash } from "../../contract/models/model-source.ts";
import { useLive } from "../live/use-live.ts";

/** A model that jobs were started for, or that was uploaded. */
export interface KnownModel {
  readonly name: string;
  readonly source: string;
}

/** The models that can be named again; undefined until they are known. */
function useKnownModels(): readonly KnownModel[] | undefined {
  const { value: versions } = useLive(async () => {
    return (await service.call("listModelVersions", {})).versions;
  });
  const { value: uploads } = useLive(async () => {
    if (!mayDo("listModels")) return [];
    return (await service.call("listModels", {})).models;
  });
  return useMemo(() => {
    if (versions === undefined || uploads === undefined) return undefined;
    // What the service hides of an address cannot be sent again.
    const named = versions.filter(({ source }) => !source.includes("=***"));
    const known = new Set(named.map(({ source }) => source));
    const others = uploads.filter(({ source }) => !known.has(source));
    return [...named, ...others.map(({ source }) => ({ name: "unnamed upload", source }))];
  }, [versions, uploads]);
}

interface ModelPickerProps {
  readonly label: string;
  readonly value: string;
  readonly onPick: (model: KnownModel) => void;
}

/** Chooses one of them. */
export function ModelPicker({ label, value, onPick }: ModelPickerProps) {
  const models = useKnownModels();
  if (models === undefined || models.length === 0) return undefined;
  const pick = (source: string) => {
    const found = models.find((model) => model.source === source);
    if (found !== undefined) onPick(found);
  };
  const isKnown = models.some(({ source }) => source === value);
  return (
    <Field label={label}>
      {({ id }) => (
        <select
          id={id}
          value={isKnown ? value : ""}
          onChange={({ currentTarget }) => pick(currentTarget.value)}
        >
          <option value="">Choose a model</option>
          {models.map((model) => (
            <option key={`${model.name} ${model.source}`} value={model.source}>
              {describeModel(model)}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** A name with where it is: `vad, upload 2623a2953f6f`. */
export function describeModel({ name, source }: KnownModel): string {
  const hash = findUploadHash(source);
  return `${name}, ${hash === undefined ? source : `upload ${hash.slice(0, 12)}`}`;
}
