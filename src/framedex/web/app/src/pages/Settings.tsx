import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import { call, get, post } from "../api/http";
import type { DatasetStatus, Field, Tag } from "../api/types";
import { count } from "../lib/format";
import { Button } from "../parts/Button";
import { datasetPage } from "../parts/DatasetPage";
import { Dialog } from "../parts/Dialog";
import { Prompt } from "../parts/Prompt";
import { Pending, type Resource, useResource } from "../parts/Resource";
import { openSharing } from "../parts/Sharing";
import { navigate, pathOf } from "../router";
import { loadDatasets } from "../state/datasets";
import { closeDialog, openDialog } from "../state/dialogs";
import { editVersion } from "../state/edits";
import { say, sayError } from "../state/notices";
import { whyNot } from "../state/permissions";
import { authIsOff } from "../state/session";
import { t } from "../texts";

const TYPES = ["string", "float", "datetime", "enum", "link"] as const;

export default datasetPage(Settings);

/** The name, the tags and the fields of a dataset, and its end. */
function Settings({ dataset: of }: { dataset: DatasetStatus }) {
  const version = editVersion.value;
  const tags = useResource<Tag[]>((signal) => get(`/dataset/${of.id}/tags`, {}, signal), [of.id, version]);
  const fields = useResource<Field[]>((signal) => get(`/dataset/${of.id}/fields`, {}, signal), [of.id, version]);
  return (
    <div class="page">
      <h1>{t.navigation.settings}</h1>
      <Names dataset={of} />
      <section aria-labelledby="tags">
        <h2 id="tags">{t.settings.tags}</h2>
        {tags.value ? <Tags dataset={of} tags={tags} /> : <Pending of={tags} />}
      </section>
      <section aria-labelledby="fields">
        <h2 id="fields">{t.settings.fields}</h2>
        {fields.value ? <Fields dataset={of} fields={fields} /> : <Pending of={fields} />}
      </section>
      {!authIsOff.value && (
        <section aria-labelledby="sharing">
          <h2 id="sharing">{t.sharing.members}</h2>
          <p>{t.sharing.openHint}</p>
          <Button needs="dataset.share" onClick={() => openSharing(of)}>
            {t.sharing.open}
          </Button>
        </section>
      )}
      <section aria-labelledby="end">
        <h2 id="end">{t.settings.deletion}</h2>
        <p>{t.settings.deletionHint}</p>
        <Button needs="dataset.delete" kind="danger" onClick={() => openDialog(() => <Deletion dataset={of} />)}>
          {t.settings.remove}
        </Button>
      </section>
    </div>
  );
}

async function attempt(work: Promise<unknown>, then: () => void): Promise<void> {
  try {
    await work;
    then();
  } catch (error) {
    sayError(error);
  }
}

function Names({ dataset: of }: { dataset: DatasetStatus }) {
  const name = useSignal(of.display_name);
  const description = useSignal(of.description);
  const isFixed = whyNot("dataset.rename") !== null;
  const id = useId();
  const save = async (event: Event): Promise<void> => {
    event.preventDefault();
    const body = { display_name: name.value, description: description.value };
    await attempt(call("PATCH", `/dataset/${of.id}`, { json: body }), () => {
      void loadDatasets().then(() => navigate(pathOf(name.value, "settings"), { replace: true }));
      say(t.settings.saved);
    });
  };
  return (
    <form class="form narrow" onSubmit={(event) => void save(event)}>
      <label for={`${id}-name`}>{t.settings.name}</label>
      <input
        id={`${id}-name`}
        required
        maxLength={255}
        readOnly={isFixed}
        value={name.value}
        onInput={(event) => {
          name.value = event.currentTarget.value;
        }}
      />
      <label for={`${id}-text`}>{t.settings.description}</label>
      <textarea
        id={`${id}-text`}
        rows={3}
        readOnly={isFixed}
        value={description.value}
        onInput={(event) => {
          description.value = event.currentTarget.value;
        }}
      />
      <Button type="submit" needs="dataset.rename">
        {t.settings.save}
      </Button>
    </form>
  );
}

function Tags({ dataset: of, tags }: { dataset: DatasetStatus; tags: Resource<Tag[]> }) {
  const rename = (tag: Tag): void =>
    openDialog(() => (
      <Prompt
        title={t.settings.rename(tag.name)}
        label={t.actions.tagName}
        initial={tag.name}
        submit={t.settings.save}
        onSubmit={(name) =>
          void attempt(call("PATCH", `/dataset/${of.id}/tags/${tag.tag_id}`, { json: { name } }), tags.reload)
        }
      />
    ));
  return (
    <ul class="rows">
      {tags.value?.map((tag) => (
        <li key={tag.tag_id}>
          <strong>{tag.name}</strong>
          <span class="number">{count(tag.count)}</span>
          <span class="hint">{tag.created_by}</span>
          <span class="grow" />
          <Button needs="dataset.edit" kind="quiet" onClick={() => rename(tag)}>
            {t.settings.renameWord}
          </Button>
          <Button
            needs="dataset.edit"
            kind="quiet"
            onClick={() => void attempt(call("DELETE", `/dataset/${of.id}/tags/${tag.tag_id}`), tags.reload)}
          >
            {t.settings.removeWord}
          </Button>
        </li>
      ))}
    </ul>
  );
}

function Fields({ dataset: of, fields }: { dataset: DatasetStatus; fields: Resource<Field[]> }) {
  const name = useSignal("");
  const type = useSignal<string>("string");
  const options = useSignal("");
  const id = useId();
  const add = (event: Event): void => {
    event.preventDefault();
    const list = options.value
      .split(",")
      .map((part) => part.trim())
      .filter(Boolean);
    const body = { field_name: name.value, field_type: type.value, enum_options: type.value === "enum" ? list : null };
    void attempt(post(`/dataset/${of.id}/fields`, body), () => {
      name.value = "";
      fields.reload();
    });
  };
  return (
    <>
      <ul class="rows">
        {fields.value?.map((field) => (
          <li key={field.field_id}>
            <strong>{field.field_name}</strong>
            <span>{field.field_type}</span>
            <span class="hint">{(field.enum_options ?? []).join(", ")}</span>
            <span class="grow" />
            <Button
              needs="dataset.edit"
              kind="quiet"
              onClick={() => void attempt(call("DELETE", `/dataset/${of.id}/fields/${field.field_id}`), fields.reload)}
            >
              {t.settings.removeWord}
            </Button>
          </li>
        ))}
      </ul>
      <form class="number-form" onSubmit={add}>
        <label class="inline" for={`${id}-name`}>
          {t.settings.fieldName}
        </label>
        <input
          id={`${id}-name`}
          required
          value={name.value}
          onInput={(event) => {
            name.value = event.currentTarget.value;
          }}
        />
        <select
          aria-label={t.settings.fieldType}
          value={type.value}
          onChange={(event) => {
            type.value = event.currentTarget.value;
          }}
        >
          {TYPES.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
        {type.value === "enum" && (
          <input
            aria-label={t.settings.options}
            placeholder={t.settings.options}
            value={options.value}
            onInput={(event) => {
              options.value = event.currentTarget.value;
            }}
          />
        )}
        <Button type="submit" needs="dataset.edit">
          {t.settings.addField}
        </Button>
      </form>
    </>
  );
}

/** Asks for the name of the dataset before it is deleted for good. */
function Deletion({ dataset: of }: { dataset: DatasetStatus }) {
  const typed = useSignal("");
  const id = useId();
  const remove = (event: Event): void => {
    event.preventDefault();
    if (typed.value !== of.display_name) return;
    closeDialog();
    void attempt(call("DELETE", `/dataset/${of.id}`), () => {
      navigate("/");
      void loadDatasets();
    });
  };
  return (
    <Dialog title={t.settings.remove} onClose={closeDialog}>
      <form class="form" onSubmit={remove}>
        <p>{t.settings.deletionHint}</p>
        <label for={id}>{t.settings.typeName(of.display_name)}</label>
        <input
          id={id}
          data-autofocus
          autocomplete="off"
          value={typed.value}
          onInput={(event) => {
            typed.value = event.currentTarget.value;
          }}
        />
        <div class="form-end">
          <Button onClick={closeDialog}>{t.cancel}</Button>
          <button type="submit" class="button danger" aria-disabled={typed.value !== of.display_name}>
            {t.settings.remove}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
