// Before anything is drawn: the theme that was chosen last time, and the mark that scripts run.
(function () {
  "use strict";
  var root = document.documentElement;
  root.classList.add("scripted");
  try {
    var kept = localStorage.getItem("onnxproof-theme");
    if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  } catch (error) {
    // A page opened from a file may have no storage: the system's theme it is.
  }
})();
