import type { ComponentChildren } from "preact";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { Button } from "../shared/button.tsx";
import { DropZone } from "../shared/drop-zone.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { ProgressBar } from "../shared/status.tsx";
import { TextField } from "../shared/field.tsx";
import type { JobForm } from "./job-form.ts";
import { ModelPicker } from "./model-picker.tsx";
import { ModelUpload } from "./model-upload.ts";

/** Takes the model: a file that is dropped or chosen, or where the service fetches it. */
export function ModelField({ form }: { readonly form: JobForm }) {
  const { upload } = form;
  if (upload.value !== undefined) return <UploadState form={form} upload={upload.value} />;
  return (
    <fieldset class="labelled">
      <legend>Model</legend>
      <DropZone
        title="Drop an ONNX file here"
        onFiles={([file]) => file !== undefined && sendModel(form, file)}
      />
      <ModelPicker
        label="or a model that is known here"
        value={form.source.value}
        onPick={(model) => {
          form.source.value = model.source;
          form.picked.value = model;
        }}
      />
      <SourceField form={form} />
    </fieldset>
  );
}

/** Has a form's job compress a file. */
export function sendModel({ upload }: JobForm, file: File): void {
  upload.value = new ModelUpload(file);
  void upload.value.start();
}

const sourceHint = "An https://, s3://, gs://, hf:// or file:// address that the service reads";

/** Of what the service hides of an address that lets everybody in who knows it. */
const hiddenHint = "The values after the question mark are hidden: enter the whole address";

function SourceField({ form: { source, messages } }: { readonly form: JobForm }) {
  const problem = messages.value["model"];
  return (
    <TextField
      label="or its address"
      hint={source.value.includes("=***") ? hiddenHint : sourceHint}
      error={source.value === "" ? problem && "Drop a file, or enter an address" : problem}
      text={source}
      placeholder="hf://owner/repository@revision/model.onnx"
    />
  );
}

const stepWords = {
  hashing: "Hashing",
  sending: "Uploading",
  done: "Uploaded",
  failed: "Stopped",
  refused: "Refused",
} as const;

function UploadState({ form, upload }: { form: JobForm; upload: ModelUpload }) {
  const remove = () => (form.upload.value = undefined);
  return (
    <fieldset class="labelled">
      <legend>Model</legend>
      <UploadProgress upload={upload} onResume={() => void upload.start()} onRemove={remove}>
        Choose another file
      </UploadProgress>
    </fieldset>
  );
}

interface UploadProgressProps {
  readonly upload: ModelUpload;
  readonly onResume: () => void;
  readonly onRemove: () => void;
  /** What the button says that removes it. */
  readonly children: ComponentChildren;
}

/** How far a file is on its way. */
export function UploadProgress({ upload, onResume, onRemove, children }: UploadProgressProps) {
  const remove = () => {
    upload.stop();
    onRemove();
  };
  const step = upload.step.value;
  return (
    <>
      <div class="upload">
        <b class="cut">{upload.file.name}</b>
        <span class="soft" role="status">
          {stepWords[step]}, {formatBytes(upload.file.size)}
        </span>
        <span class="grow" />
        {step === "failed" && <Button onClick={onResume}>Resume</Button>}
        <Button look="quiet" onClick={remove}>
          {children}
        </Button>
      </div>
      {step !== "done" && step !== "refused" && (
        <ProgressBar fraction={upload.fraction.value} label={stepWords[step]} />
      )}
      <MaybeError error={upload.error.value} />
    </>
  );
}
