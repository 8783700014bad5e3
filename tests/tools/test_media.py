import base64
import io
from pathlib import Path

import pytest
from made_documents import pdf

from hira.core.errors import ToolError
from hira.core.messages import user
from hira.tools.media import media_reader
from hira.tools.media.encoding import LONGEST_SIDE

Image = pytest.importorskip("PIL.Image")


def picture(path: Path, size: tuple[int, int] = (40, 30), orientation: int = 0) -> Path:
    image = Image.new("RGB", size, "red")
    exif = image.getexif()
    if orientation:
        exif[0x0112] = orientation
    image.save(path, exif=exif)
    return path


def opened(url: str) -> "Image.Image":
    return Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))


def test_a_small_picture_goes_as_it_is(tmp_path: Path) -> None:
    path = picture(tmp_path / "a.png")
    media = media_reader([path])(str(path))
    assert base64.b64decode(media.url.partition(",")[2]) == path.read_bytes()
    assert user("see", media).wire["content"][1] == {"type": "image_url", "image_url": {"url": media.url}}


def test_a_large_picture_is_made_smaller_and_a_turned_one_upright(tmp_path: Path) -> None:
    read = media_reader([tmp_path])
    picture(tmp_path / "large.jpg", (4000, 1000))
    assert opened(read(str(tmp_path / "large.jpg")).url).size == (LONGEST_SIDE, 512)
    picture(tmp_path / "turned.jpg", (40, 30), orientation=6)
    assert opened(read("turned.jpg").url).size == (30, 40)


@pytest.mark.parametrize("name", ["/etc/passwd", "../secret.png", "nothing.png"])
def test_only_what_was_given_can_be_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    picture(tmp_path / "secret.png")
    picture(tmp_path / "in" / "a.png")
    with pytest.raises(ToolError, match=r"no file .* readable: in"):
        media_reader([tmp_path / "in"])(name)


def test_what_is_no_media_or_broken_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2")
    (tmp_path / "b.png").write_bytes(b"not a picture")
    read = media_reader([tmp_path])
    with pytest.raises(ToolError, match="pictures, sounds and videos"):
        read("a.csv")
    with pytest.raises(ToolError, match=r"b\.png cannot be read as a picture"):
        read("b.png")


def test_a_page_of_a_pdf_file_is_sent_as_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("pypdfium2")
    pdf(tmp_path / "scan.pdf", ["one", "two"])
    read = media_reader([tmp_path])
    assert opened(read("scan.pdf#page=2").url).height == LONGEST_SIDE
    for name in ("scan.pdf", "scan.pdf#page=3", "scan.pdf#page=0", "scan.pdf#page=x"):
        with pytest.raises(ToolError, match="has 2 pages: name one, such as"):
            read(name)
    (tmp_path / "broken.pdf").write_bytes(b"not a file")
    with pytest.raises(ToolError, match=r"broken\.pdf cannot be read as a PDF file"):
        read("broken.pdf")
