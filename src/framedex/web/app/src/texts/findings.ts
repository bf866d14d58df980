/** The words of facts about duplicates, of frames of videos and of rankings of labels, which are loaded with their pages. */
const images = (n: number): string => `${n.toLocaleString()} ${n === 1 ? "image" : "images"}`;

export const facts = {
  factsOf: "Facts of the members",
  member: "Image",
  factNames: {
    size: "Pixels",
    detail_pixels: "Detail, MP",
    quality: "Quality",
    recompressed: "Compressed twice",
    clipped: "Clipped",
    added_pixels: "Added, MP",
    cropped: "Cropped",
    colour: "Colours",
    metadata: "Metadata",
    size_bytes: "Bytes",
    modified_at: "Changed",
  },
  yes: "yes",
  no: "no",
};

export const frames = {
  level: "0.96, also frames of one video",
  byPlan: "The clean-up thins out the frames of all videos at once.",
};

export const noise = {
  wrong: "Wrong labels",
  rate: (wrong: number, total: number, rate: string, low: string, high: string) =>
    `About ${wrong.toLocaleString()} of ${images(total)} have a wrong label: ${rate} (${low} to ${high}).`,
  suits: "The encoder suits these labels: the kinds of evidence agree where they are certain.",
  expected: (n: number, share: string) => `About ${share} of the first ${images(n)} in the ranking have a wrong label.`,
  expectedSoFar: "Expected share of wrong labels up to here",
  byLabel: "Wrong labels by label",
  columns: { label: "Label", images: "Images", wrong: "Wrong" },
  ranked: "All, ranked",
  showAnyway: "Show anyway",
  tooFew: (n: number) => `Labels are ranked once ${images(n)} have labels, at least two different ones.`,
  noneRanked: "No image has a label that can be reviewed.",
  probability: "Probability that it is wrong",
  estimate: "Estimate how many labels are wrong",
};
