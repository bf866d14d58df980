/** The traits of the widget, both ways: the address, the filter, the selection. */
import { effect } from "@preact/signals";
import { filterText, parseFilter } from "../lib/vql";
import { navigate, pathOf, query, route } from "../router";
import { sayError } from "../state/notices";
import { choose, selection } from "../state/pictures";
import type { Surroundings } from "./surroundings";

const SAVE_MS = 50;
/** The pages whose address has a filter. */
const WITH_FILTER = ["pictures", "map"];

/** Keep the traits and the app equal until the widget is closed. */
export function startTraits({ model, closing }: Surroundings): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const put = (name: string, value: unknown): void => {
    if (JSON.stringify(model.get(name)) === JSON.stringify(value)) return;
    model.set(name, value);
    clearTimeout(timer);
    timer = setTimeout(save, SAVE_MS);
  };
  const save = (): void => {
    try {
      model.save_changes();
    } catch (error) {
      sayError(error); // there is no kernel any more
    }
  };
  const present = (): string => {
    const { dataset, page, rest } = route.peek();
    const path = dataset === null ? (page === "home" ? "/" : `/${page}`) : pathOf(dataset, page, rest);
    const text = query.peek().toString();
    return text ? `${path}?${text}` : path;
  };

  const chosen = model.get("selected") as string[];
  if (chosen.length) choose(chosen);
  else if (model.get("all_selected")) choose("all");
  const ends: (() => void)[] = [
    effect(() => {
      route.value;
      put("vql", parseFilter(query.value.get("f")));
      put("url", present());
    }),
    effect(() => {
      put("all_selected", selection.isAll.value);
      put("selected", selection.list);
    }),
  ];
  const listen = (name: string, call: () => void): void => {
    model.on(`change:${name}`, call);
    ends.push(() => model.off(`change:${name}`, call));
  };
  listen("url", () => {
    const url = String(model.get("url"));
    if (url !== present()) navigate(url);
  });
  listen("vql", () => {
    const wanted = model.get("vql") as never[];
    const parameters = new URLSearchParams(query.peek());
    if (JSON.stringify(parseFilter(parameters.get("f"))) === JSON.stringify(wanted)) return;
    const { dataset, page } = route.peek();
    if (dataset === null) return;
    const stays = WITH_FILTER.includes(page);
    const next = stays ? parameters : new URLSearchParams();
    next.delete("f");
    const text = filterText(wanted);
    if (text) next.set("f", text);
    navigate(pathOf(dataset, stays ? page : "pictures", null, next.toString()));
  });
  const select = (): void => {
    const ids = model.get("selected") as string[];
    if (model.get("all_selected")) {
      if (!selection.isAll.peek()) choose("all");
    } else if (selection.isAll.peek() || JSON.stringify(ids) !== JSON.stringify(selection.list)) choose(ids);
  };
  listen("selected", select);
  listen("all_selected", select);
  closing.addEventListener("abort", () => {
    clearTimeout(timer);
    for (const end of ends) end();
  });
}
