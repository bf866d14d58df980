/** The words of the widget in notebooks. */
export const notebook = {
  loading: "Framedex is loading.",
  waiting: "Framedex is shown once the running cell has ended.",
  busy: "The kernel is busy: the app goes on when the running cell has ended.",
  gone: "The kernel does not answer. If it was restarted or stopped, run the cell again.",
  failed: (reason: string) => `Framedex could not be shown: ${reason}`,
  tooLarge: (size: string) =>
    `This file has ${size}, which is too much for a notebook. Use the Python call, or framedex serve.`,
};
