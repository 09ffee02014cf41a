// Opened from a folder, a browser lets no page read another: the search then shows titles without summaries.
if (window.location.protocol === "file:") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}
