package attr

type Attr struct{ Name, Doc string }
