// Package browser looks at the pages of the examples as people do: in Chromium, without a
// window.
//
// Chromium comes from Debian's package chromium-headless-shell, which is unpacked but not
// installed. Its console shows what people see in the developer tools, including requests
// that fail.
package browser
