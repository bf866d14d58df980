/** The start of the app, and which page is shown. */

import { signal } from "@preact/signals";
import { type ComponentType, render } from "preact";
import { useEffect } from "preact/hooks";
import { closing, place, root, showTitle } from "#host";
import "./styles/app.css";
import { startEvents } from "./api/events";
import { onRefused } from "./api/http";
import { refuseKey, startKeys, useKeys } from "./keys/dispatcher";
import { KeyHelp } from "./parts/KeyHelp";
import { Palette } from "./parts/Palette";
import { Shell } from "./parts/Shell";
import { Skeleton } from "./parts/Skeleton";
import { useIdlePageKeys } from "./parts/useIdleKeys";
import { navigate, pathOf, route, startRouter } from "./router";
import { addressOf, dataset, datasets, loadDatasets, loadStats } from "./state/datasets";
import { closeDialog, dialog, openDialog } from "./state/dialogs";
import { redo, startEdits, undo } from "./state/edits";
import { say, sayError } from "./state/notices";
import { loadUnread, startNotifications } from "./state/notifications";
import { type Permission, whyNot } from "./state/permissions";
import { startTheme } from "./state/preferences";
import { authIsOff, isAdmin, isKnown, loadProfile, profile, seesUsers } from "./state/session";
import { loadTasks, startTasks } from "./state/tasks";
import { t } from "./texts";

type Page = ComponentType;
const ofDataset = () => import("./pages/ofDataset");
const ofService = () => import("./pages/ofService");
/** The pages, loaded when one of their group is shown first. */
const LOADERS: Record<string, () => Promise<Page>> = {
  home: async () => (await ofService()).Home,
  login: async () => (await ofService()).Login,
  tasks: async () => (await ofService()).Tasks,
  import: async () => (await ofService()).Import,
  notifications: async () => (await ofService()).Notifications,
  account: async () => (await ofService()).Account,
  users: async () => (await ofService()).Users,
  admin: async () => (await ofService()).Admin,
  overview: async () => (await ofDataset()).Overview,
  pictures: async () => (await ofDataset()).Pictures,
  m: async () => (await ofDataset()).Viewer,
  clusters: async () => (await ofDataset()).Clusters,
  map: async () => {
    import("./map/Stage").catch(() => {}); // the page reads it, too, and says what is wrong
    return (await ofDataset()).MapPage;
  },
  duplicates: async () => (await ofDataset()).Duplicates,
  labels: async () => (await ofDataset()).Labels,
  issues: async () => (await ofDataset()).Issues,
  cleanup: async () => (await ofDataset()).Cleanup,
  history: async () => (await ofDataset()).History,
  views: async () => (await ofDataset()).Views,
  settings: async () => (await ofDataset()).Settings,
};
const loaded = signal<Record<string, Page>>({});

async function load(page: string): Promise<void> {
  const loader = LOADERS[page];
  if (!loader || loaded.peek()[page]) return;
  try {
    const found = await loader();
    loaded.value = { ...loaded.peek(), [page]: found };
  } catch (error) {
    sayError(error);
  }
}

function App() {
  const { page, dataset: name } = route.value;
  const found = dataset.value;
  useEffect(() => void load(page), [page]);
  useEffect(() => {
    if (found) void loadStats(found.id).catch(sayError);
  }, [found?.id]);
  useEffect(() => {
    showTitle([titleOf(page), name, t.app].filter(Boolean).join(" · "));
    closeDialog();
  }, [page, name]);
  useGlobalKeys();
  const Shown = loaded.value[page];
  const isMissing = name !== null && datasets.value !== null && found === null;
  if (page === "login") return Shown ? <Shown /> : null;
  return (
    <>
      <Shell>
        {isMissing ? (
          <p class="empty">{t.notFound.dataset(name)}</p>
        ) : !LOADERS[page] ? (
          <p class="empty">{t.notFound.page}</p>
        ) : Shown && (name === null || found) ? (
          <Shown />
        ) : (
          <PageSkeleton />
        )}
      </Shell>
      {dialog.value?.()}
    </>
  );
}

function PageSkeleton() {
  useIdlePageKeys();
  return <Skeleton of="page" />;
}

function titleOf(page: string): string {
  return page in t.navigation ? t.navigation[page as keyof typeof t.navigation] : t.home.title;
}

function go(page: string): void {
  const found = dataset.peek();
  if (found) navigate(pathOf(addressOf(found), page));
}

function useGlobalKeys(): void {
  useKeys("global", {
    help: () => openDialog(() => <KeyHelp />),
    palette: () => openDialog(() => <Palette />),
    undo: () => void (dataset.peek() && undo(dataset.peek()!.id)),
    redo: () => void (dataset.peek() && redo(dataset.peek()!.id)),
    copy: () =>
      void ofDataset()
        .then(({ openCopy }) => openCopy())
        .catch(sayError),
    region: nextRegion,
    "go.overview": () => go("overview"),
    "go.pictures": () => go("pictures"),
    "go.clusters": () => go("clusters"),
    "go.map": () => go("map"),
    "go.duplicates": () => go("duplicates"),
    "go.labels": () => go("labels"),
    "go.issues": () => go("issues"),
    "go.cleanup": () => go("cleanup"),
    "go.history": () => go("history"),
    "go.views": () => go("views"),
    "go.tasks": () => navigate("/tasks"),
    "go.notifications": () => navigate("/notifications"),
    "go.home": () => navigate("/"),
    "go.account": () => navigate("/account"),
    ...(seesUsers.value ? { "go.users": () => navigate("/users") } : {}),
    ...(isAdmin.value ? { "go.admin": () => navigate("/admin") } : {}),
    ...(dataset.value && !authIsOff.value ? { share } : {}),
  });
  useKeys("dialog", { close: closeDialog });
}

/** Open the dialog that shares the present dataset. */
function share(): void {
  const found = dataset.peek();
  if (found) void ofDataset().then(({ openSharing }) => openSharing(found), sayError);
}

/** Give the focus to the next part of the page: banner, navigation, content, details. */
function nextRegion(): void {
  const regions = [...root.querySelectorAll<HTMLElement>(".banner, nav, #content, aside, .status-bar")];
  const present = regions.findIndex((region) => region.contains(root.activeElement));
  for (let step = 1; step <= regions.length; step++) {
    const region = regions[(present + step) % regions.length]!;
    const target = region.querySelector<HTMLElement>("[tabindex='0'], a[href], button, input, select, [role=gridcell]");
    if (target && !(present >= 0 && regions[present]!.contains(target) && region.id !== "content")) {
      target.focus();
      return;
    }
  }
}

/** Let keys say why they do nothing, and read again what the user may do when the service refuses something. */
function startPermissions(): void {
  refuseKey.current = (permission) => {
    const reason = whyNot(permission as Permission);
    if (reason) say(reason, "error");
    return reason !== null;
  };
  onRefused.current = (error) => {
    const isOfDataset = error.status === 403 || error.message === "Dataset not found";
    if (isOfDataset && dataset.peek()) void loadDatasets().catch(() => {});
  };
  const look = (): void => {
    if (!document.hidden && profile.peek()) void loadDatasets().catch(() => {});
  };
  document.addEventListener("visibilitychange", look, { signal: closing });
}

async function start(): Promise<void> {
  startTheme();
  startRouter();
  startKeys();
  startPermissions();
  startTasks();
  startEdits();
  startNotifications();
  render(<App />, place());
  try {
    await loadProfile();
    if (profile.value && route.value.page !== "login") {
      await Promise.all([loadDatasets(), loadTasks(), loadUnread()]);
      startEvents();
    }
  } catch (error) {
    sayError(error);
  } finally {
    isKnown.value = true;
  }
}

void start();
