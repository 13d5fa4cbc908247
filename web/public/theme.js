// Before the first paint, so that a dark page never flashes white.
(function () {
  var wanted = localStorage.getItem("seatrial.theme");
  var dark = wanted === "dark" || (wanted !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.classList.toggle("dark", dark);
})();
