// Package live keeps the current picture of a camera and shows it as a web page.
//
// While a page is open, [Feed] fetches pictures from the camera continuously, and
// otherwise once in a while. [NewHandler] serves them.
//
// Always: people see why there is no picture. Never: more than one request to the camera
// at a time, however many people look.
package live
