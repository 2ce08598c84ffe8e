package scene

import (
	"hash/fnv"
	"image"
	"image/color"
	"math"
	"time"
)

// The size of a picture, in pixels.
const (
	Width  = 640
	Height = 360
)

const (
	horizon    = Height * 9 / 20 // where the floor meets the wall
	ballRadius = 34
	stripe     = 40 // height of the bars with text at the top and at the bottom
	margin     = 12
	nameScale  = 3
	timeScale  = 2
	maxName    = 24 // characters of a name that fit
	timeLayout = "2006-01-02 15:04:05.0"
)

// Scene is what a camera of a name sees.
type Scene struct {
	name  string
	hue   float64 // of the walls, from 0 to 1
	phase float64 // of the ball, in seconds
}

// New returns the scene of a camera.
func New(name string) *Scene {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name)) // never fails
	hash := sum.Sum32()
	if letters := []rune(name); len(letters) > maxName {
		name = string(letters[:maxName])
	}
	return &Scene{name: name, hue: float64(hash%360) / 360, phase: float64(hash % 97)}
}

// Draw returns the picture at a time, which is printed in UTC.
func (s *Scene) Draw(at time.Time) *image.RGBA {
	at = at.UTC()
	picture := image.NewRGBA(image.Rect(0, 0, Width, Height))
	seconds := float64(at.UnixMilli()%3_600_000)/1000 + s.phase
	s.drawRoom(picture)
	s.drawBall(picture, seconds)
	s.drawOverlay(picture, at)
	return picture
}

// drawRoom draws a wall and a floor of tiles that become smaller with distance.
func (s *Scene) drawRoom(picture *image.RGBA) {
	for y := range Height {
		shade := fromHSV(s.hue, 0.55, 0.30+0.45*float64(y)/horizon)
		depth := 0.0
		if y > horizon {
			depth = Height / float64(y-horizon)
		}
		// Far tiles are smaller than pixels: let them fade into one color.
		contrast := max(0, 1-depth/14)
		light, dark := fromHSV(s.hue+0.08, 0.40, 0.66+0.13*contrast), fromHSV(s.hue+0.08, 0.40, 0.66-0.13*contrast)
		for x := range Width {
			if y <= horizon {
				picture.SetRGBA(x, y, shade)
				continue
			}
			column, row := int(math.Floor(float64(x-Width/2)*depth/110)), int(math.Floor(depth*2.2))
			if (column+row)&1 == 0 {
				picture.SetRGBA(x, y, light)
			} else {
				picture.SetRGBA(x, y, dark)
			}
		}
	}
	// A door in the wall, at a place that differs between cameras.
	left := margin*4 + int(s.hue*(Width-220))
	door := image.Rect(left, horizon-104, left+62, horizon+1)
	fill(picture, door.Inset(-4), fromHSV(s.hue, 0.25, 0.92))
	fill(picture, door, fromHSV(s.hue+0.5, 0.50, 0.42))
	fill(picture, image.Rect(left+50, horizon-54, left+56, horizon-46), color.RGBA{240, 220, 140, 255})
}

// drawBall draws a ball that bounces through the room, with its shadow.
func (s *Scene) drawBall(picture *image.RGBA, seconds float64) {
	x := Width/2 + (Width/2-2*ballRadius)*math.Sin(seconds*0.8)
	height := 120 * math.Abs(math.Sin(seconds*2.1))
	floor := float64(Height - stripe - 26)
	body, center := s.hue+0.5, floor-ballRadius-height
	for dy := -ballRadius; dy <= ballRadius; dy++ {
		for dx := -ballRadius; dx <= ballRadius; dx++ {
			distance := math.Hypot(float64(dx), float64(dy)) / ballRadius
			if distance > 1 {
				continue
			}
			if shadow := int(floor) + dy/5; dy%5 == 0 {
				darken(picture, int(x)+dx, shadow)
			}
			glint := math.Hypot(float64(dx)+11, float64(dy)+12) / (2 * ballRadius)
			picture.SetRGBA(int(x)+dx, int(center)+dy, fromHSV(body, math.Min(1, 0.25+glint), 1-0.55*glint))
		}
	}
}

// darken halves the brightness of a pixel.
func darken(picture *image.RGBA, x, y int) {
	old := picture.RGBAAt(x, y)
	picture.SetRGBA(x, y, color.RGBA{old.R / 2, old.G / 2, old.B / 2, old.A})
}

// drawOverlay prints the name and the time on dark bars, and a mark that blinks.
func (s *Scene) drawOverlay(picture *image.RGBA, at time.Time) {
	paper, ink := color.RGBA{14, 16, 20, 255}, color.RGBA{245, 245, 245, 255}
	fill(picture, image.Rect(0, 0, Width, stripe), paper)
	fill(picture, image.Rect(0, Height-stripe, Width, Height), paper)
	drawText(picture, nameCorner, nameScale, s.name, ink)
	drawText(picture, timeCorner, timeScale, at.Format(timeLayout), ink)
	live := "LIVE"
	corner := image.Pt(Width-margin-textWidth(live, timeScale), timeCorner.Y)
	drawText(picture, corner, timeScale, live, ink)
	if at.UnixMilli()/500%2 == 0 {
		fill(picture, image.Rect(corner.X-22, corner.Y, corner.X-8, corner.Y+glyphHeight*timeScale), color.RGBA{225, 40, 40, 255})
	}
}

// nameCorner and timeCorner are the upper left corners of the two texts.
var (
	nameCorner = image.Pt(margin, (stripe-glyphHeight*nameScale)/2)
	timeCorner = image.Pt(margin, Height-stripe+(stripe-glyphHeight*timeScale)/2)
)

// fromHSV returns the color of a hue, which wraps around at 1, a saturation and a value.
func fromHSV(hue, saturation, value float64) color.RGBA {
	_, hue = math.Modf(hue)
	value = math.Max(0, math.Min(1, value))
	channel := func(offset float64) uint8 {
		k := math.Mod(offset+hue*6, 6)
		return uint8(255 * (value - value*saturation*math.Max(0, math.Min(1, math.Min(k, 4-k)))))
	}
	return color.RGBA{channel(5), channel(3), channel(1), 255}
}
