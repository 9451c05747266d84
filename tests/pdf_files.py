"""PDF files written by hand: strings at places of pages."""


def pdf(pages, encrypted=False, n_pages=None):
    """Return the bytes of a PDF file.

    Each page is a list of ``(x, y, size, text)``, in points from the lower left corner;
    ``n_pages`` repeats the first page.
    """
    contents = [
        "BT "
        + " ".join(
            f"/F1 {size} Tf 1 0 0 1 {x} {y} Tm ({_escaped(text)}) Tj"
            for x, y, size, text in page
        )
        + " ET"
        for page in pages
    ]
    shown = list(range(len(pages))) if n_pages is None else [0] * n_pages
    font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "", font]
    objects += [
        f"<< /Length {len(text)} >>\nstream\n{text}\nendstream" for text in contents
    ]
    kids = []
    for number in shown:
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {4 + number} 0 R >>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Count {len(kids)} /Kids [{' '.join(kids)}] >>"
    extra = ""
    if encrypted:  # with keys that fit no password
        keys = "<" + "ab" * 32 + ">"
        objects.append(f"<< /Filter /Standard /V 1 /R 2 /O {keys} /U {keys} /P -44 >>")
        extra = f"/Encrypt {len(objects)} 0 R /ID [<00> <00>]"
    data, offsets = "%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(data))
        data += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    data += (
        f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n"
        f"<< /Size {size} /Root 1 0 R {extra} >>\nstartxref\n{len(data)}\n%%EOF\n"
    )
    return data.encode("latin-1")


def _escaped(text):
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


def column(x, top, lines, size=10):
    """Return lines below each other as a page of :func:`pdf` takes them."""
    return [(x, top - 12 * n, size, line) for n, line in enumerate(lines)]
