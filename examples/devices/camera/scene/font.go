package scene

import (
	"image"
	"image/color"
	"strings"
)

// Glyphs are 5 by 7 cells. A cell of margin on each side separates them.
const (
	glyphWidth  = 5
	glyphHeight = 7
	advance     = glyphWidth + 1
)

// glyphs are the characters of the font, a line per row. Lower case letters are drawn
// as upper case, unknown characters as a box.
var glyphs = map[rune][glyphHeight]string{
	' ': {"     ", "     ", "     ", "     ", "     ", "     ", "     "},
	'0': {" ### ", "#   #", "#  ##", "# # #", "##  #", "#   #", " ### "},
	'1': {"  #  ", " ##  ", "  #  ", "  #  ", "  #  ", "  #  ", " ### "},
	'2': {" ### ", "#   #", "    #", "   # ", "  #  ", " #   ", "#####"},
	'3': {" ### ", "#   #", "    #", "  ## ", "    #", "#   #", " ### "},
	'4': {"   # ", "  ## ", " # # ", "#  # ", "#####", "   # ", "   # "},
	'5': {"#####", "#    ", "#### ", "    #", "    #", "#   #", " ### "},
	'6': {"  ## ", " #   ", "#    ", "#### ", "#   #", "#   #", " ### "},
	'7': {"#####", "    #", "   # ", "  #  ", " #   ", " #   ", " #   "},
	'8': {" ### ", "#   #", "#   #", " ### ", "#   #", "#   #", " ### "},
	'9': {" ### ", "#   #", "#   #", " ####", "    #", "   # ", " ##  "},
	'A': {" ### ", "#   #", "#   #", "#####", "#   #", "#   #", "#   #"},
	'B': {"#### ", "#   #", "#   #", "#### ", "#   #", "#   #", "#### "},
	'C': {" ### ", "#   #", "#    ", "#    ", "#    ", "#   #", " ### "},
	'D': {"#### ", "#   #", "#   #", "#   #", "#   #", "#   #", "#### "},
	'E': {"#####", "#    ", "#    ", "#### ", "#    ", "#    ", "#####"},
	'F': {"#####", "#    ", "#    ", "#### ", "#    ", "#    ", "#    "},
	'G': {" ### ", "#   #", "#    ", "# ###", "#   #", "#   #", " ### "},
	'H': {"#   #", "#   #", "#   #", "#####", "#   #", "#   #", "#   #"},
	'I': {" ### ", "  #  ", "  #  ", "  #  ", "  #  ", "  #  ", " ### "},
	'J': {"  ###", "   # ", "   # ", "   # ", "   # ", "#  # ", " ##  "},
	'K': {"#   #", "#  # ", "# #  ", "##   ", "# #  ", "#  # ", "#   #"},
	'L': {"#    ", "#    ", "#    ", "#    ", "#    ", "#    ", "#####"},
	'M': {"#   #", "## ##", "# # #", "# # #", "#   #", "#   #", "#   #"},
	'N': {"#   #", "##  #", "# # #", "#  ##", "#   #", "#   #", "#   #"},
	'O': {" ### ", "#   #", "#   #", "#   #", "#   #", "#   #", " ### "},
	'P': {"#### ", "#   #", "#   #", "#### ", "#    ", "#    ", "#    "},
	'Q': {" ### ", "#   #", "#   #", "#   #", "# # #", "#  # ", " ## #"},
	'R': {"#### ", "#   #", "#   #", "#### ", "# #  ", "#  # ", "#   #"},
	'S': {" ####", "#    ", "#    ", " ### ", "    #", "    #", "#### "},
	'T': {"#####", "  #  ", "  #  ", "  #  ", "  #  ", "  #  ", "  #  "},
	'U': {"#   #", "#   #", "#   #", "#   #", "#   #", "#   #", " ### "},
	'V': {"#   #", "#   #", "#   #", "#   #", "#   #", " # # ", "  #  "},
	'W': {"#   #", "#   #", "#   #", "# # #", "# # #", "## ##", "#   #"},
	'X': {"#   #", "#   #", " # # ", "  #  ", " # # ", "#   #", "#   #"},
	'Y': {"#   #", "#   #", " # # ", "  #  ", "  #  ", "  #  ", "  #  "},
	'Z': {"#####", "    #", "   # ", "  #  ", " #   ", "#    ", "#####"},
	'-': {"     ", "     ", "     ", "#####", "     ", "     ", "     "},
	':': {"     ", "  #  ", "  #  ", "     ", "  #  ", "  #  ", "     "},
	'.': {"     ", "     ", "     ", "     ", "     ", " ##  ", " ##  "},
	'/': {"     ", "    #", "   # ", "  #  ", " #   ", "#    ", "     "},
	'_': {"     ", "     ", "     ", "     ", "     ", "     ", "#####"},
}

// unknown is drawn for a character that is not in glyphs.
var unknown = [glyphHeight]string{"#####", "#   #", "#   #", "#   #", "#   #", "#   #", "#####"}

// textWidth returns the width of a text whose cells are scale pixels wide.
func textWidth(text string, scale int) int { return len([]rune(text)) * advance * scale }

// drawText draws a text with its upper left corner at a point.
func drawText(target *image.RGBA, at image.Point, scale int, text string, ink color.RGBA) {
	for i, letter := range []rune(strings.ToUpper(text)) {
		glyph, ok := glyphs[letter]
		if !ok {
			glyph = unknown
		}
		for row, line := range glyph {
			for column, cell := range line {
				if cell == ' ' {
					continue
				}
				corner := at.Add(image.Pt((i*advance+column)*scale, row*scale))
				fill(target, image.Rectangle{corner, corner.Add(image.Pt(scale, scale))}, ink)
			}
		}
	}
}

// fill fills a rectangle, as far as it is within the picture.
func fill(target *image.RGBA, area image.Rectangle, ink color.RGBA) {
	area = area.Intersect(target.Bounds())
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			target.SetRGBA(x, y, ink)
		}
	}
}
